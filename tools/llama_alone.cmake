# Read by llama.cpp's build right after its project() line: without its command lines' common code, which is forced on
# before that and takes as long to build as the library. See SKBUILD_CMAKE_ARGS in hatch.toml.
set(LLAMA_BUILD_COMMON OFF)
