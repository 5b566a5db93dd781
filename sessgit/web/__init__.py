"""The web page of `sessgit web`: a server on the loopback interface, and the page that it serves."""
