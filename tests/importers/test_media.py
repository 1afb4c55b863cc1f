"""Types of images and sounds: those of ATIF, told by data or by name."""

from __future__ import annotations

from typing import get_args

import pytest

from tracemark.importers.media import IMAGES, SOUNDS, image_type
from tracemark.model.trajectory import AudioSource, ImageSource


def test_the_types_are_those_of_the_model() -> None:
    assert set(IMAGES) == set(get_args(ImageSource.model_fields["media_type"].annotation))
    assert set(SOUNDS.values()) < set(get_args(AudioSource.model_fields["media_type"].annotation))


@pytest.mark.parametrize(
    ("path", "media"),
    [
        ("data:image/png;base64,AAAA", "image/png"),
        ("data:image/jpg;base64,AAAA", "image/jpeg"),
        ("data:image/tiff;base64,AAAA", None),
        ("data:,a.png", None),
        ("https://example.org/a.JPG", "image/jpeg"),
        ("shots/a.webp", "image/webp"),
        ("shots/a", None),
        ("png", None),
    ],
)
def test_the_data_or_the_name_tells_the_type(path: str, media: str | None) -> None:
    assert image_type(path) == media
