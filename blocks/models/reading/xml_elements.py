"""Elements of XML files that know where they are, and what of them has been read.

Errors thus state what to repair and where, and parts that were not read can be listed.

Needs lxml, which `flexure[urdf]` installs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from flexure.blocks.multibody.plants.plant_builder import PlantBuilder
from flexure.diagrams.checks.arguments import import_extra, shown
from flexure.diagrams.checks.errors import DeclarationError, FlexureError, quoted, warn
from flexure.diagrams.concurrency.threads import cached_property
from flexure.diagrams.values.arrays import FloatArray

_MOST_ATTRIBUTES = 1000
TRUE = ("true", "1")  # texts for what holds
_NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE
)


class Element:
    """An element of an XML file, with checked access to its attributes and children.

    It remembers for which attributes and children it was asked; see `unread`.

    Namespaces are read as prefixes: the tag of ``<drake:joint>`` is ``"drake:joint"``, whatever the
    prefix stands for, and also when it is declared nowhere. ``file`` is what errors call the file.
    """

    def __init__(self, node: Any, file: str) -> None:
        self._node = node
        self._file = file
        self._known: set[str] = {"name"}
        self._is_passed_over = False

    @cached_property
    def tag(self) -> str:
        """Name of the element with its prefix, if it has one."""
        local: str = self._node.tag.rpartition("}")[2]
        return f"{self._node.prefix}:{local}" if self._node.prefix else local

    @cached_property
    def attributes(self) -> dict[str, str]:
        """All attributes by their names, with their prefixes."""
        if len(self._node.attrib) > _MOST_ATTRIBUTES:  # reading them takes time with their square
            raise self.refusal(
                expected=f"at most {_MOST_ATTRIBUTES} attributes", found=f"{len(self._node.attrib)}"
            )
        found = {}
        for key, value in self._node.attrib.items():
            uri, _, local = key.rpartition("}")
            found[f"{self._prefixes[uri[1:]]}:{local}" if uri else local] = value
        return found

    @cached_property
    def _prefixes(self) -> dict[str, str]:
        return {uri: prefix for prefix, uri in self._node.nsmap.items()}

    @property
    def num_children(self) -> int:
        """Number of children."""
        return len(self._node)

    @cached_property
    def _elements(self) -> list[Element]:
        nodes = (node for node in self._node if isinstance(node.tag, str))
        return [Element(node, self._file) for node in nodes]

    def __str__(self) -> str:
        owner = self._node
        while owner is not None and "name" not in owner.attrib:
            owner = owner.getparent()
        label = f"<{self.tag}>"
        if owner is self._node:
            label = f"<{self.tag} name={owner.get('name')!r}>"
        elif owner is not None:
            label += f" in {Element(owner, self._file).tag} {owner.get('name')!r}"
        return f"{label}, line {self._node.sourceline} of {self._file}"

    # Children --------------------------------------------------------------------------------

    def children(self, *tags: str) -> list[Element]:
        """Return the children with one of some tags, or all of them, in their order."""
        self.take_as_known(*tags)
        return [element for element in self._elements if not tags or element.tag in tags]

    def child(self, tag: str) -> Element | None:
        """Return the only child with a tag, or None; refuse several of them."""
        found = self.children(tag)
        if len(found) > 1:
            raise self.refusal(expected=f"one <{tag}>", found=f"{len(found)} of them")
        return found[0] if found else None

    def required(self, tag: str) -> Element:
        """Return the only child with a tag; refuse its absence."""
        found = self.child(tag)
        if found is None:
            raise self.refusal(expected=f"<{tag}> inside", found="none")
        return found

    # Values ----------------------------------------------------------------------------------

    @property
    def content(self) -> str:
        """The text of the element, without the space around it."""
        return (self._node.text or "").strip()

    def text(self, attribute: str) -> str:
        """Return the text of an attribute; refuse its absence."""
        value = self.text_or(attribute, "")
        if not value:
            found = "an empty one" if attribute in self.attributes else "none"
            raise self.refusal(expected=f"the attribute {attribute!r}", found=found)
        return value

    def plant_name(self, attribute: str = "name") -> str:
        """Return the name of an attribute with ``_`` for what names in plants cannot have."""
        return plant_name(self.text(attribute))

    def text_or(self, attribute: str, default: str) -> str:
        """Return the text of an attribute, or another one in its absence."""
        self.take_as_known(attribute)
        return self.attributes.get(attribute, default).strip()

    def numbers(self, attribute: str, *sizes: int, default: FloatArray | None = None) -> FloatArray:
        """Return the numbers of an attribute, of one of some counts; infinities are accepted."""
        if default is not None and attribute not in self.attributes:
            return default
        return self._parsed(self.text(attribute), sizes, f" in the attribute {attribute!r}")

    def number_of(self, tag: str, default: float) -> float:
        """Return the number that the only child with a tag is around, or another one."""
        found = self.child(tag)
        return default if found is None else found.number_inside()

    def is_set(self, tag: str) -> bool:
        """Return whether the only child with a tag says that something holds."""
        found = self.child(tag)
        return found is not None and found.content in TRUE

    def number_inside(self) -> float:
        """Return the number that the element is around, which can be infinite."""
        return float(self._parsed(self.content, (1,), "")[0])

    def numbers_inside(self, *sizes: int) -> FloatArray:
        """Return the finite numbers that the element is around, of one of some counts."""
        values = self._parsed(self.content, sizes, "")
        if not np.isfinite(values).all():
            raise self.refusal(expected="finite numbers", found=repr(self.content))
        return values

    def _parsed(self, text: str, sizes: tuple[int, ...], where: str) -> FloatArray:
        """Return the numbers of a text, of one of some counts."""
        try:
            values = np.array([_number(word) for word in text.split()])
        except ValueError:
            values = np.array([np.nan])
        if values.size not in sizes or np.isnan(values).any():
            counts = " or ".join("a number" if n == 1 else f"{n} numbers" for n in sizes)
            raise self.refusal(expected=f"{counts}{where}", found=repr(text[:200]))
        return values

    def number(self, attribute: str, default: float | None = None) -> float:
        """Return the number of an attribute, which can be infinite."""
        standard = None if default is None else np.array([default])
        return float(self.numbers(attribute, 1, default=standard)[0])

    def vector(self, attribute: str, default: FloatArray | None = None) -> FloatArray:
        """Return the three finite numbers of an attribute."""
        values = self.numbers(attribute, 3, default=default)
        if not np.isfinite(values).all():
            raise self.refusal(
                expected=f"finite numbers in the attribute {attribute!r}",
                found=repr(self.text(attribute)),
            )
        return values

    # What nobody has asked for ---------------------------------------------------------------

    def take_as_known(self, *names: str) -> None:
        """Take attributes and children with some names as read, as what has no meaning here."""
        self._known.update(names)

    def pass_over(self, *tags: str) -> None:
        """Take all that is inside as dealt with, or children with some tags: they mean nothing."""
        self._is_passed_over = self._is_passed_over or not tags
        for each in self.children(*tags) if tags else ():
            each.pass_over()

    def unread(self) -> Iterator[tuple[str, str]]:
        """Yield attributes and elements inside that were not read: what, and which one."""
        if self._is_passed_over:
            return
        for name in self.attributes:
            if name not in self._known:
                yield f"{name} of <{self.tag}>", f"the attribute {name!r} of {self}"
        for element in self._elements:
            if element.tag in self._known:
                yield from element.unread()
            else:
                yield f"<{element.tag}>", str(element)

    # Refusing --------------------------------------------------------------------------------

    def refusal(self, *, expected: str, found: str, remedy: str | None = None) -> DeclarationError:
        """Make an error that says where the element is."""
        return DeclarationError(
            f"Cannot load {self}", expected=expected, found=found, remedy=remedy
        )

    def refuse_other_attributes(self, *known: str) -> None:
        """Refuse attributes whose meaning would be lost."""
        unknown = [name for name in self.attributes if name not in known]
        self.take_as_known(*known)
        if unknown:
            raise self.refusal(
                expected=f"no other attributes than {quoted(known)}", found=quoted(unknown)
            )

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Say of errors raised inside that they come from this element."""
        try:
            yield
        except FlexureError as error:
            raise DeclarationError(
                f"{error.attempt}, from {self}",
                expected=error.expected,
                found=error.found,
                remedy=error.remedy,
            ) from error


def plant_name(name: str) -> str:
    """Return a name with ``_`` for what names in plants cannot have, and before a first digit.

    >>> plant_name("link_0.0"), plant_name("2dof")
    ('link_0_0', '_2dof')
    """
    name = re.sub(r"[^\w\[\]\-]", "_", name)
    return name if re.match(r"[^\W\d]", name) else f"_{name}"


def _number(word: str) -> float:
    """Return the number that a word is, of ASCII digits alone: Python takes ``1_0`` for 10."""
    if not _NUMBER.fullmatch(word):
        raise ValueError(word)
    return float(word)


def read_xml(source: str | Path) -> Element:
    """Read an XML file, or a text that is one, and return its outermost element.

    Entities are not resolved, and no other file is read. The source is the name of a file, or the
    text itself: what contains ``<`` is no name.
    """
    if not isinstance(source, (str, Path)):
        raise DeclarationError(
            "Cannot read XML",
            expected="the name of a file as str or Path, or a text with <",
            found=shown(source),
        )
    import_extra("lxml", "urdf", "Cannot read XML files")
    from lxml import etree

    if not str(source).strip():
        wanted = "the name of a file, or a text with <"
        raise DeclarationError("Cannot read XML", expected=wanted, found="an empty text")
    is_text = isinstance(source, str) and "<" in source
    file = "the text" if is_text else f"'{Path(source).name}'"
    # With recover, the parser goes on after errors, all of which it reports: an undeclared prefix
    # is the only one that is accepted.
    parser = etree.XMLParser(
        recover=True,
        resolve_entities=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8" if is_text else None,
    )
    try:
        content = str(source).encode(errors="replace") if is_text else Path(source).read_bytes()
        root = etree.fromstring(content, parser)
    except IsADirectoryError as error:
        raise DeclarationError(
            f"Cannot read {file}",
            expected="a file, or a text with <",
            found=f"a folder, '{source}'",
            remedy="Name a file in it",
        ) from error
    except (OSError, UnicodeEncodeError) as error:  # the latter of names that no file can have
        raise DeclarationError(
            f"Cannot read {file}",
            expected="a file, or a text with <",
            found=f"{getattr(error, 'strerror', 'no such name')} at '{source}'",
        ) from error
    except etree.XMLSyntaxError as error:
        raise _malformed(file, error.lineno, error.msg) from error
    for problem in parser.error_log:
        if problem.type != etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE:
            raise _malformed(file, problem.line, problem.message)
    return Element(root, file)


def _malformed(file: str, line: int | None, message: str) -> DeclarationError:
    """Make the error of a file that is no XML."""
    return DeclarationError(
        f"Cannot read {file}", expected="well-formed XML", found=f"in line {line}: {message}"
    )


_TOLD = 5  # kinds of things in a warning


class LeftOut:
    """Collects what is not understood, or what plants do not have."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._kinds: dict[str, list[str]] = {}

    def add(self, text: str, kind: str | None = None) -> None:
        """Add a thing; of those of one kind, a warning has the first one."""
        self._texts.append(text)
        self._kinds.setdefault(text if kind is None else kind, []).append(text)

    def add_all(self, found: Iterable[tuple[str, str]]) -> None:
        """Add kinds and texts."""
        for kind, text in found:
            self.add(text, kind)

    @property
    def texts(self) -> tuple[str, ...]:
        """All of it."""
        return tuple(self._texts)

    def summary(self) -> str:
        """Return one line with an example of each kind, as far as they are few."""
        told = [
            f"{texts[0]} and {len(texts) - 1} more of the kind" if len(texts) > 1 else texts[0]
            for texts in self._kinds.values()
        ]
        more = len(told) - _TOLD
        return "; ".join(told[:_TOLD]) + (f"; and {more} other kinds of things" * (more > 0))

    def tell(self, builder: PlantBuilder) -> None:
        """Hand the list to a builder, and warn of what is in it."""
        builder.left_out = self.texts
        if self._texts:
            warn(
                f"The plant of '{builder.name}' lacks some elements of its file. Left out:"
                f" {self.summary()}. The attribute left_out of the builder lists all."
            )
