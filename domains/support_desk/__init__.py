"""A small support desk: orders, gift cards and bookings in SQLite, with tools that really change them.

It is the example domain of this repository. Nothing here is used by the library; the library is used here, through its
public functions only.
"""
