"""How Sphinx builds the site."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from jinja2.sandbox import SandboxedEnvironment
from numpydoc import docscrape_sphinx
from numpydoc.xref import DEFAULT_LINKS
from sphinx.environment.adapters.toctree import TocTree
from sphinx.util.inspect import signature, stringify_signature

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # this checkout, installed or not
os.environ["MPLBACKEND"] = "Agg"

import flexure  # noqa: E402
from docs.gallery import make_gallery, renew  # noqa: E402
from docs.lesson_notebooks import write_notebooks  # noqa: E402
from docs.names_of import LISTED, list_names  # noqa: E402
from docs.samples import name_of, pages, pictures_of, run  # noqa: E402

project = "Flexure"
author = copyright = "The Flexure developers"
release = version = flexure.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "docs.names_of",
]
exclude_patterns = ["_build", "_generated/names.rst"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "attrs_block", "attrs_inline", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Single backticks are references, and every reference must lead somewhere.
default_role = "py:obj"
nitpicky = True
nitpick_ignore = [("py:obj", "rotation_vector_rate_matrix")]  # the reference only lists it
autodoc_typehints = "none"
autodoc_member_order = "bysource"
_pages = [f"api/{page.name}" for page in sorted(HERE.glob("api/*.rst"))]
autosummary_generate = [*_pages, f"_generated/{LISTED.name}"]
add_module_names = False
toc_object_entries = False
maximum_signature_line_length = 80
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
DEFAULT_LINKS.clear()  # links to Python's own types would need its site during the build
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    name: f"{module.__name__}.{name}"
    for module in (
        *(
            flexure.constraints,
            flexure.diagrams,
            flexure.errors,
            flexure.fitting,
            flexure.multibody,
        ),
        *(flexure.laws, flexure.results, flexure.sections, flexure),  # whose pages come first
    )
    for name in module.__all__
    if isinstance(getattr(module, name), type)
}

html_theme = "pydata_sphinx_theme"
html_title = f"Flexure {release}"
html_theme_options = {
    "logo": {"text": "Flexure"},
    "navbar_align": "left",
    "navbar_center": [],  # all pages are in the sidebar
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        "index": [],  # its live door is wide
        **{page.stem: [] for page in HERE.glob("coming-from-*.md")},  # code in two columns
    },
    "show_toc_level": 2,
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_context = {"default_mode": "auto"}
html_favicon = "_static/flexure.svg"
html_sidebars = {"**": ["site_nav.html"]}
html_extra_path = ["_generated/live"]  # pages that run by themselves, made by the gallery
(HERE / "_generated" / "live").mkdir(parents=True, exist_ok=True)
list_names()
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.highlight-text) > div.highlight pre"
html_static_path = ["_static"]
html_css_files = ["flexure.css"]
html_js_files = ["fold.js"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"


class OneEnvironment:
    """Keeps the template of docstrings, which numpydoc would compile for each of them."""

    kept: Any = None

    def __new__(cls, loader: Any) -> Any:
        """Return the environment that was made first."""
        cls.kept = cls.kept or SandboxedEnvironment(loader=loader)
        return cls.kept


docscrape_sphinx.SandboxedEnvironment = OneEnvironment


def write_inline_math(translator: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers show without a script from elsewhere."""
    translator.body.append(tex2mathml(node.astext()))
    raise SkipNode


def write_block_math(translator: Any, node: Any) -> None:
    """Write a formula on lines of its own."""
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    raise SkipNode


def make_pictures(app: Sphinx) -> None:
    """Run the samples of every page that shows pictures; they save them in a folder of the page."""
    for page in pages():
        if pictures_of(page):
            renew(HERE / "_generated" / name_of(page), page, partial(run, page))


_HREF = re.compile(r'href="([^"]*)"')
_SIDEBAR: dict[str, Any] = {
    "startdepth": 0,
    "show_nav_level": 1,
    "maxdepth": 2,
    "collapse": True,
    "includehidden": True,
    "titles_only": True,
}


class SharedSidebars:
    """Renders the sidebar once for all pages below the same page that it does not list.

    These are the pages of single names and of sources, four of five pages of the site.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ...], str] = {}

    def __call__(self, app: Sphinx, page: str, template: str, context: Any, tree: Any) -> None:
        """Give the template of a page its sidebar."""
        place = posixpath.dirname(page) or "."

        def from_root(link: re.Match[str]) -> str:
            return f'href="/{posixpath.normpath(posixpath.join(place, link[1]))}"'

        def from_here(link: re.Match[str]) -> str:
            return f'href="{posixpath.relpath(link[1], f"/{place}")}"'

        def sidebar() -> str:
            ancestors = TocTree(app.env).get_toctree_ancestors(page)  # with the page, if any
            is_listed, branch = 0 < len(ancestors) <= _SIDEBAR["maxdepth"], tuple(ancestors[1:])
            if is_listed or branch not in self._kept:
                html = str(context["generate_toctree_html"]("sidebar", **_SIDEBAR))
                if is_listed:
                    return html
                self._kept[branch] = _HREF.sub(from_root, html)
            return _HREF.sub(from_here, self._kept[branch])

        context["site_pages"] = sidebar


def find_in_modules(app: Sphinx, env: Any, node: Any, contnode: Any) -> Any:
    """Find what docstrings call by its last name and the reference has by its full name."""
    if node.get("refdomain") != "py" or "refspecific" in node:
        return None
    domain = env.get_domain("py")
    if f"flexure.{node['reftarget']}" in domain.objects:  # rather than a member of the same name
        node["reftarget"] = f"flexure.{node['reftarget']}"
    node["refspecific"] = True
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], node["reftarget"], node, contnode
    )


def constructor_signature(
    _app: Sphinx, _what: str, _name: str, shown: Any, _options: Any, text: str, returns: str
) -> tuple[str, str] | None:
    """Return the signature of a constructor, where Sphinx takes that of `__new__` of a base."""
    if not isinstance(shown, type) or text != "(*args, **named)":
        return None
    return stringify_signature(signature(shown), show_annotation=False), returns


def setup(app: Sphinx) -> None:
    """Register the above."""
    app.add_html_math_renderer("mathml", (write_inline_math, None), (write_block_math, None))
    app.connect("builder-inited", lambda app: make_gallery(HERE / "_generated"))
    app.connect("builder-inited", make_pictures)
    notebooks = HERE / "_generated" / "live" / "notebooks"
    app.connect("builder-inited", lambda app: write_notebooks(notebooks))
    app.connect("autodoc-process-signature", constructor_signature)
    app.connect("missing-reference", find_in_modules)
    app.connect("html-page-context", SharedSidebars(), priority=400)  # before templates are read
