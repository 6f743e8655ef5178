//go:build linux

package attackers

import "testing"

func TestKindsAreChosenByTexts(t *testing.T) {
	if all := len(Kinds("")); all != len(attacks()) {
		t.Errorf("%d of %d kinds", all, len(attacks()))
	}
	some := Kinds("resume:,agent: idle")
	if len(some) != 6 || some[5] != "agent: idle connections" {
		t.Errorf("%+v", some)
	}
}
