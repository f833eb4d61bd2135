"""conlleval's rules, one by one and slowly: the judge of pegasos.metrics. Nothing here comes from the package.

What the script does for each line of a file, done for each token of two lists of sequences; a blank line, which is a
token outside of every chunk, ends each sequence. `bioes_*` are the rules that ports of the script have for S.
"""

from __future__ import annotations

import re


def end_of_chunk(before, tag, before_type, type_):
    """Whether a chunk ended between two tokens."""
    end = False
    if before == "B" and tag == "B":
        end = True
    if before == "B" and tag == "O":
        end = True
    if before == "I" and tag == "B":
        end = True
    if before == "I" and tag == "O":
        end = True
    if before == "E" and tag == "E":
        end = True
    if before == "E" and tag == "I":
        end = True
    if before == "E" and tag == "O":
        end = True
    if before not in ("O", ".") and before_type != type_:
        end = True
    if before in ("]", "["):  # chunks of one token
        end = True
    return end


def start_of_chunk(before, tag, before_type, type_):
    """Whether a chunk began between two tokens."""
    start = False
    if before == "B" and tag == "B":
        start = True
    if before == "I" and tag == "B":
        start = True
    if before == "O" and tag == "B":
        start = True
    if before == "O" and tag == "I":
        start = True
    if before == "E" and tag == "E":
        start = True
    if before == "E" and tag == "I":
        start = True
    if before == "O" and tag == "E":
        start = True
    if tag not in ("O", ".") and before_type != type_:
        start = True
    if tag in ("[", "]"):  # chunks of one token
        start = True
    return start


def bioes_end(before, tag, before_type, type_):
    end = before in ("E", "S")
    if before == "B" and tag in ("B", "S", "O"):
        end = True
    if before == "I" and tag in ("B", "S", "O"):
        end = True
    if before != "O" and before_type != type_:
        end = True
    return end


def bioes_start(before, tag, before_type, type_):
    start = tag in ("B", "S")
    if before in ("E", "S", "O") and tag in ("E", "I"):
        start = True
    if tag != "O" and before_type != type_:
        start = True
    return start


RULES = {"bio": (start_of_chunk, end_of_chunk), "bioes": (bioes_start, bioes_end)}


def parts(tag):
    match = re.fullmatch(r"([^-]*)-(.*)", tag, re.DOTALL)
    return (match[1], match[2]) if match else (tag, "")


def add(counts, kind):
    counts[kind] = counts.get(kind, 0) + 1


class Counts:
    """All that the script counts, by type where it is a dict, and the text it prints."""

    def __init__(self, y_true, y_pred, scheme="bio"):
        starts, ends = RULES[scheme]
        self.correct, self.there, self.found = {}, {}, {}
        self.tokens = self.right = 0
        in_correct = False
        last_c, last_ct, last_g, last_gt = "O", "", "O", ""
        for true, guess in zip(y_true, y_pred, strict=True):
            for correct, guessed in [*zip(true, guess, strict=True), (None, None)]:
                blank = correct is None
                (c, ct), (g, gt) = (("O", ""), ("O", "")) if blank else (parts(correct), parts(guessed))
                if in_correct:
                    if ends(last_c, c, last_ct, ct) and ends(last_g, g, last_gt, gt) and last_gt == last_ct:
                        in_correct = False
                        add(self.correct, last_ct)
                    elif ends(last_c, c, last_ct, ct) != ends(last_g, g, last_gt, gt) or gt != ct:
                        in_correct = False
                if starts(last_c, c, last_ct, ct) and starts(last_g, g, last_gt, gt) and gt == ct:
                    in_correct = True
                if starts(last_c, c, last_ct, ct):
                    add(self.there, ct)
                if starts(last_g, g, last_gt, gt):
                    add(self.found, gt)
                if not blank:
                    self.right += c == g and gt == ct
                    self.tokens += 1
                last_c, last_ct, last_g, last_gt = c, ct, g, gt
        if in_correct:
            add(self.correct, last_ct)

    @property
    def text(self):
        there, found, correct = (sum(counts.values()) for counts in (self.there, self.found, self.correct))
        text = f"processed {self.tokens} tokens with {there} phrases; "
        text += f"found: {found} phrases; correct: {correct}.\n"
        if self.tokens > 0:
            text += f"accuracy: {100 * self.right / self.tokens:6.2f}%; "
            text += scores(correct, found, there) + "\n"
        for kind in sorted({*self.there, *self.found}):
            found = self.found.get(kind, 0)
            text += f"{kind:>17}: " + scores(self.correct.get(kind, 0), found, self.there.get(kind, 0))
            text += f"  {found}\n"
        return text


def scores(correct, found, there):
    precision = 100 * correct / found if found > 0 else 0.0
    recall = 100 * correct / there if there > 0 else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"
