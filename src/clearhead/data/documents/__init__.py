"""Translating documents: txt, PO, TMX and XLIFF in, the same document with its translations out.

Knows structure, markup and placeholders, and brings every one of them through. Refuses to know models and sentences:
`translate` is a function from texts to texts.
"""

from clearhead.data.documents.open import FORMATS, open_document
from clearhead.data.documents.segment import Document, Segment, translate_document

__all__ = ["FORMATS", "Document", "Segment", "open_document", "translate_document"]
