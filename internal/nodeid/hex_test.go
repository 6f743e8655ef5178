package nodeid

import "testing"

// TestIDsAreOfOneLength checks that Hex keeps a leading zero, and that ParseHex does not need it.
func TestIDsAreOfOneLength(t *testing.T) {
	const id = 0x0dac5e1ea1bb28a8
	if got := Hex(id); got != "0dac5e1ea1bb28a8" {
		t.Errorf("the ID is %q", got)
	}
	for _, text := range []string{"0dac5e1ea1bb28a8", "dac5e1ea1bb28a8"} {
		if got, err := ParseHex(text); err != nil || got != id {
			t.Errorf("%q is %x, %v", text, got, err)
		}
	}
	if _, err := ParseHex("10dac5e1ea1bb28a8"); err == nil {
		t.Error("an ID of 17 digits was accepted")
	}
}
