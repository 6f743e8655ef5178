package shown

import (
	"bytes"
	"maps"
	"testing"
)

// A value alone must be its own encoding, so that a program without support for labels shows it
// unchanged.
func TestWhatIsShownComesBack(t *testing.T) {
	labels := map[string]string{"shard": "7"}
	for _, c := range []struct {
		value  string
		labels map[string]string
		mark   []byte
		alone  bool
	}{
		{"", nil, nil, true},
		{"charging", nil, nil, true},
		{"\x00{}", nil, nil, false}, // a value that looks like an encoding with JSON
		{"a\xff", labels, nil, false},
		{"", labels, []byte{1, 0, 2}, false},
		{"charging", nil, []byte("trace"), false},
	} {
		b := Encode(c.value, c.labels, c.mark)
		value, got := Decode(b)
		if value != c.value || !maps.Equal(got, c.labels) || !bytes.Equal(MarkOf(b), c.mark) {
			t.Errorf("%q, %v and mark %q came back as %q, %v and %q", c.value, c.labels, c.mark, value, got, MarkOf(b))
		}
		if alone := string(b) == c.value; alone != c.alone {
			t.Errorf("%q, %v and mark %q are %q: the value alone: %v", c.value, c.labels, c.mark, b, alone)
		}
	}
	if value, labels := Decode([]byte("\x00no JSON")); value != "\x00no JSON" || labels != nil {
		t.Errorf("bytes of no form are decoded as %q and %v", value, labels)
	}
}
