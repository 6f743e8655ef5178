package console

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

func TestCommandsForAKey(t *testing.T) {
	k := contended("it's $(rm)", "2", nil)
	never := func(mortise.Standing) bool { return false }
	got := commandsFor("mortise", k, never)
	want := []string{`mortise get 'it'\''s $(rm)'`,
		`mortise unlock --force 'it'\''s $(rm)' --token 7 --reason "..."`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := commandsFor("orders 2", k, never)[0]; got != want[0]+" -cluster 'orders 2'" {
		t.Error(got)
	}
	for why, none := range map[string][]string{
		"a key like a flag": commandsFor("mortise", contended("-h", "2", nil), never),
		"a hold that ends by itself": commandsFor("mortise", k,
			func(mortise.Standing) bool { return true })[1:],
	} {
		if len(none) > 0 {
			t.Errorf("%s: %q", why, none)
		}
	}
	k.Waiting = 0
	if got := commandsFor("mortise", k, never); len(got) != 1 {
		t.Errorf("no request waits, and a command ends the hold: %q", got)
	}
	k = contended("a", "2", nil)
	for range 9 {
		k.Queue = append(k.Queue, k.Queue[0])
	}
	if got := commandsFor("mortise", k, never); len(got) != maxCommands {
		t.Errorf("%d commands", len(got))
	}
}

// A shell must read a command as exactly the words that it was made of, whatever the key contains.
func TestAShellReadsTheKey(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	for _, key := range []string{"a", "it's", `"; rm -rf x; "`, "$(id)", "`id`", "a\nb", "\u202eabc", `\`, "!!", "*",
		"é漢", "a\xffb", "~", "#x", "\u202e'b\\"} {
		line := strings.Replace(command("mortise", "get", key), "mortise get ", "printf %s ", 1)
		out, err := exec.Command(bash, "-c", line).Output()
		if err != nil || string(out) != key {
			t.Errorf("%q is read as %q: %v", key, out, err)
		}
	}
}

// The page offers commands for the requested key and for a group that has a problem, but ends no
// hold while there is no leader.
func TestThePageOffersCommands(t *testing.T) {
	s := scened(contended("orders/1", "2", nil))
	s.one, s.status.Cluster = s.all, "blue"
	if v := s.view(); len(v.Key.Commands) != 2 || len(v.Findings[0].Commands) != 0 {
		t.Errorf("%q, %q", v.Key.Commands, v.Findings[0].Commands)
	}
	s.status.Leader, s.status.Attached = "", false
	v := s.view()
	if want := []string{"mortise doctor -cluster blue"}; !slices.Equal(v.Findings[0].Commands, want) ||
		len(v.Key.Commands) != 0 {
		t.Errorf("%q, %q", v.Findings[0].Commands, v.Key.Commands)
	}
}
