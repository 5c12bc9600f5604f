"""Hold a GPU duty inside a runner.

`oarbank_sdk.control.Control` and `oarbank_sdk.duty.Duty` are the runner's half: standard library only, each file
works when it is copied alone. `oarbank_sdk.contracts` (the extra ``contracts``) holds the typed documents.
"""
