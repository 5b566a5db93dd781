"""What lies beside a transcript in the client's folder."""
