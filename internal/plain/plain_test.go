package plain

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"unicode"
)

const nasty = "a\x1b[2J\r\nb\a\u009b\u202ec\u2066\u2028\ufeff\U000e0041\xffé😀 d"

func TestText(t *testing.T) {
	const want = `a\u{1b}[2J\u{d}\u{a}b\u{7}\u{9b}\u{202e}c\u{2066}\u{2028}\u{feff}\u{e0041}\x{ff}é😀 d`
	if got := Text(nasty); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Text(want); got != want {
		t.Errorf("twice: %s", got)
	}
	if got := Lines("a\nb\r"); got != "a\nb\\u{d}" {
		t.Errorf("%q", got)
	}
	if got := Sprintf("%s|%v|%v|%d", nasty, errors.New(nasty), []string{nasty, "x"},
		7); got != want+"|"+want+"|["+want+" x]|7" {
		t.Errorf("%s", got)
	}
	for r := range rune(unicode.MaxRune + 1) {
		for _, out := range Text(string(r)) {
			if !unicode.IsPrint(out) {
				t.Fatalf("%U stays", r)
			}
		}
	}
}

func TestJSONDecodesToTheSame(t *testing.T) {
	for _, text := range []string{nasty, "plain", "\\\"\u202e", ""} {
		encoded, err := json.Marshal(map[string]string{text: text})
		if err != nil {
			t.Fatal(err)
		}
		safe := JSON(append(encoded, '\n'))
		var want, got map[string]string
		if err := errors.Join(json.Unmarshal(encoded, &want), json.Unmarshal(safe, &got)); err != nil ||
			fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if Lines(string(safe)) != string(safe) {
			t.Errorf("%q is left in %s", text, safe)
		}
	}
}

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "orders-0": true, "Zoë 😀, at 5": true, "\u0645\u06cc\u200c\u062e\u0648": true,
		"a\x1b": false, "a\n": false, "\a": false, "\u009b": false, "\u202e": false, "\u2066": false, "\u200f": false,
		"\u061c": false, "\u2028": false, "\xff": false,
	} {
		if Is(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
