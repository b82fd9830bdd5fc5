"""One function per verb, used by the command line, Python and the server alike; and the Model object.

The only room that joins text, data, training, decoding and evaluation. Refuses to print: news go to a listener.
"""
