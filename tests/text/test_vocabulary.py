import pytest

from clearhead.errors import UsageError
from clearhead.text import BOS, EOS, MASK, PAD, SPECIAL, UNK
from clearhead.text.vocabulary import Vocabulary


def test_special_ids_are_fixed():
    assert (PAD, BOS, EOS, UNK, MASK) == (0, 1, 2, 3, 4)
    assert SPECIAL == ("<pad>", "<bos>", "<eos>", "<unk>", "<mask>")


def test_order_of_ids():
    vocabulary = Vocabulary(("a", "b"), byte_fallback=True)
    assert vocabulary.ids == {"a": 261, "b": 262}
    assert vocabulary.size == 263
    assert Vocabulary(("a", "b"), byte_fallback=False).ids == {"a": 5, "b": 6}


def test_what_is_lacking_is_bytes_or_unknown():
    assert Vocabulary((), byte_fallback=True).lacking("é") == [5 + 0xC3, 5 + 0xA9]
    assert Vocabulary((), byte_fallback=False).lacking("é") == [UNK]


def test_decode_joins_bytes_across_tokens():
    vocabulary = Vocabulary((" H", "a"), byte_fallback=True)
    assert vocabulary.decode([BOS, 261, 5 + 0xC3, 5 + 0xA9, 262, EOS, PAD, MASK]) == " Héa"


def test_decode_says_where_it_does_not_know():
    assert Vocabulary(("a",), byte_fallback=True).decode([261, 5 + 0xC3, 261, UNK]) == "a�a�"


@pytest.mark.parametrize("ids", [[262], [-1, 261]])
def test_decode_refuses_ids_that_are_no_token(ids):
    with pytest.raises(UsageError, match="0 to 261"):
        Vocabulary(("a",), byte_fallback=True).decode(ids)


def test_printed_tokens():
    vocabulary = Vocabulary((" Haus", "\n", "\u200b", "▁", "é"), byte_fallback=True)
    assert [vocabulary.token(i) for i in range(261, 266)] == ["▁Haus", "\\n", "\\u200b", "▁", "é"]
    assert vocabulary.token(PAD) == "<pad>"
    assert vocabulary.token(5 + 0x41) == "<0x41>"
    with pytest.raises(UsageError, match="266"):
        vocabulary.token(266)
