"""The pages that look into a model.

    document.py   a trace and its lenses as the data of a page          page.py    one self-contained file of HTML
    picture.py    one view as SVG or PNG                                static/    the built page (sources: web/)

Knows traces and what `verbs.explain` measured. Refuses to know models: a page can only show what a trace holds.
"""
