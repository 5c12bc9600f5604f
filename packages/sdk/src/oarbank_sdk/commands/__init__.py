"""The commands that `oarbank-sdk` brings itself: each translates arguments, calls the library, and prints."""
