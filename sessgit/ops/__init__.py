"""What can be done with sessions, one verb a file: values in, values out."""
