"""An error of bad input is one line that a terminal may show, whatever names and values it quotes."""

from hypothesis import example, given
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError


@given(st.text())
@example("unknown field `a\nb`")
@example("\x1b[2J\u202e\udc80\u2028")
def test_it_is_one_line_without_commands_to_a_terminal(text):
    said = str(InputError(text))
    assert said.isprintable()
    assert said == text or not text.isprintable(), "what can be shown stays as it is"
