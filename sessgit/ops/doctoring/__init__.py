"""What `doctor` looks at: the recording, what lies in the store, the machine around it."""
