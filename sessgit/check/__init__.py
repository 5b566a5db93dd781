"""The state of the store: status, verify, doctor, repair, recover, gc."""
