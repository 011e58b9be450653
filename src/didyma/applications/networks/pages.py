"""Pages that show pictures of what a network found."""

from __future__ import annotations

from html import escape
from typing import Any

from didyma.report.plots import as_picture

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0 auto; padding: 2rem 1.25rem; max-width: 75rem; color: #1c2430;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
h1 {{ font-size: 1.5rem; }}
h2 {{ font-size: 1rem; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid #d5dae1; }}
p {{ margin: 0; }}
figure {{ margin: .75rem 0 0; overflow-x: auto; }}
ol {{ padding-left: 1.2rem; }}
.quiet {{ color: #6b7685; font-weight: 400; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def page(title: str, body: str) -> str:
    """An HTML document; ``title`` is a text, ``body`` is HTML."""
    return PAGE.format(title=escape(title), body=body)


def svg_element(figure: Any) -> str:
    """A figure of matplotlib as an element, without what makes it a document."""
    svg = as_picture(figure).decode()
    return svg[svg.index("<svg") :]
