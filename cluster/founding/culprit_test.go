package founding

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// The tests of this file see one core. Each row of the tables is a wrong setting, with the text
// that names its culprit and the step.

type meeting struct {
	name, addr string
	at         string // where it answers; "" means at addr
	change     func(*Settings)
}

func TestTheCulpritIsNamed(t *testing.T) {
	founders := Settings{Founders: []string{"n1", "n2", "n3"}, Voters: 3, SessionTTL: simTTL, Grace: simTTL}
	replicas := Settings{Replicas: 3, Voters: 3, SessionTTL: simTTL, Grace: simTTL}
	var literal []Entry
	for _, addr := range []string{"a:1", "b:1", "c:1"} {
		literal = append(literal, Entry{Name: addr, Addrs: []string{addr}, Resolved: always})
	}
	for name, c := range map[string]struct {
		met   []meeting
		ended map[string]Outcome
		// unsent is the address to which the next question is not sent, because a dial has just failed.
		unsent string
		want   string // for both kinds of settings
		// only with Founders, or only with Replicas
		founders, replicas string
	}{
		"two instances of one name": {met: []meeting{{name: "n1", addr: "b:1"}, {name: "n3", addr: "c:1"}},
			founders: `the instances at a:1 and b:1 are both called "n1": give each instance a Name of its own; no ` +
				`instance is called "n2"`,
			replicas: `the instances at a:1 and b:1 are both called "n1": give each instance a Name of its own`},
		"two others of one name": {met: []meeting{{name: "n2", addr: "b:1"}, {name: "n2", addr: "c:1"}},
			founders: `the instances at b:1 and c:1 are both called "n2": give each instance a Name of its own; no ` +
				`instance is called "n3"`,
			replicas: `the instances at b:1 and c:1 are both called "n2": give each instance a Name of its own`},
		"a wrong Advertise": {met: []meeting{{name: "n2", addr: "127.0.0.1:9", at: "b:1"}, {name: "n3", addr: "c:1"}},
			ended: map[string]Outcome{"127.0.0.1:9": Refused},
			want:  `"n2" calls itself 127.0.0.1:9, where nothing listens: correct its Advertise (it answers at b:1)`},
		"an Advertise not dialed for a moment": {met: []meeting{{name: "n2", addr: "127.0.0.1:9", at: "b:1"},
			{name: "n3", addr: "c:1"}}, ended: map[string]Outcome{"127.0.0.1:9": Refused}, unsent: "127.0.0.1:9",
			want: `"n2" calls itself 127.0.0.1:9, where nothing listens: correct its Advertise (it answers at b:1)`},
		"an Advertise without an answer": {met: []meeting{{name: "n2", addr: "127.0.0.1:9", at: "b:1"},
			{name: "n3", addr: "c:1"}}, ended: map[string]Outcome{"127.0.0.1:9": Silent},
			want: `"n2" calls itself 127.0.0.1:9, where no instance answers: correct its Advertise (it answers at b:1)`},
		"the Advertise of another program": {met: []meeting{{name: "n2", addr: "127.0.0.1:9", at: "b:1"},
			{name: "n3", addr: "c:1"}}, ended: map[string]Outcome{"127.0.0.1:9": Foreign},
			want: `"n2" calls itself 127.0.0.1:9, where another cluster or another program listens: correct its ` +
				`Advertise (it answers at b:1)`},
		"the Advertise of another instance": {met: []meeting{{name: "n2", addr: "c:1", at: "b:1"},
			{name: "n3", addr: "c:1"}},
			want: `"n2" calls itself c:1, where "n3" listens: correct its Advertise (it answers at b:1)`},
		"the Advertise of this instance": {met: []meeting{{name: "n2", addr: "a:1", at: "b:1"},
			{name: "n3", addr: "c:1"}},
			want: `"n2" calls itself a:1, the address of "n1": correct its Advertise (it answers at b:1)`},
		"another SessionTTL": {met: []meeting{{name: "n2", addr: "b:1",
			change: func(s *Settings) { s.SessionTTL *= 2 }}},
			want: `"n2" (b:1) and this instance have different SessionTTL (4s and 2s): make them equal on all`},
		"other Founders": {met: []meeting{{name: "n2", addr: "b:1", change: func(s *Settings) {
			s.Founders, s.Replicas = []string{"m1", "n2", "n3"}, 0
		}}},
			want: `"n2" (b:1) and this instance have different Founders ([m1, n2, n3] and Replicas: 3): make them equal on all`,
			founders: `"n2" (b:1) and this instance have different Founders ([m1, n2, n3] and [n1, n2, n3]): make ` +
				`them equal on all`},
		"another SessionTTL than two others": {met: []meeting{
			{name: "n2", addr: "b:1", change: func(s *Settings) { s.SessionTTL *= 2 }},
			{name: "n3", addr: "c:1", change: func(s *Settings) { s.SessionTTL *= 2 }}},
			want: `"n1" (a:1) has another SessionTTL (2s) than "n2" (b:1), "n3" (c:1) (4s): make them equal on all`},
		"another SessionTTL and another Grace": {met: []meeting{
			{name: "n2", addr: "b:1", change: func(s *Settings) { s.SessionTTL *= 2 }},
			{name: "n3", addr: "c:1", change: func(s *Settings) { s.Grace *= 2 }}},
			want: `"n2" (b:1) has another SessionTTL (4s) than "n1" (a:1), "n3" (c:1) (2s): make them equal on all`},
		"a misspelt founder": {met: []meeting{{name: "n2", addr: "b:1"}, {name: "n33", addr: "c:1"}},
			founders: `missing founders: "n3"; "n33" (c:1) runs and is not one of the Founders: if it should be, ` +
				`correct its Name, or Founders on all instances`},
		"two misspelt founders": {met: []meeting{{name: "m2", addr: "b:1"}, {name: "m3", addr: "c:1"}},
			founders: `missing founders: "n2", "n3"; "m2" (b:1), "m3" (c:1) run and are not among the Founders: if ` +
				`one of them should be, correct its Name, or Founders on all instances`},
		"nothing runs there": {met: []meeting{{name: "n2", addr: "b:1"}}, ended: map[string]Outcome{"c:1": Refused},
			founders: `missing founders: "n3"; nothing listens at c:1: start the instance there, or correct Join`,
			replicas: `2 of 3 instances (Replicas: 3) are here (n1, n2); nothing listens at c:1: start the instance ` +
				`there, or correct Join`},
	} {
		for kind, settings := range map[string]Settings{"Founders": founders, "Replicas": replicas} {
			want := c.want
			if settings.Replicas > 0 && c.replicas != "" {
				want = c.replicas
			} else if settings.Replicas == 0 && c.founders != "" {
				want = c.founders
			}
			if want == "" {
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				core := New(Config{Instance: nodeidtest.ID(5), Name: "n1", Addr: "a:1", Settings: settings, Rules: 3})
				core.now, core.wall = time.Second, 1_000_000
				core.Places(literal, nil)
				core.arrange()
				for range 2 { // the first answer may name the address of the second one
					for i, m := range c.met {
						who := InstanceInfo{Instance: nodeidtest.ID(uint64(7 + i)), Name: m.name, Addr: m.addr,
							Settings: settings, Rules: 3, WallUnixMS: core.wall}
						if m.change != nil {
							m.change(&who.Settings)
						}
						at := m.at
						if at == "" {
							at = m.addr
						}
						core.tell(at, who)
					}
					core.arrange()
					for addr, outcome := range c.ended {
						core.end(addr, outcome)
						if addr == c.unsent {
							core.end(addr, Silent)
						}
					}
				}
				if got := core.Waiting(); got != "founding waits: "+want {
					t.Errorf("waits for\n%s, want\nfounding waits: %s", got, want)
				}
				if got := core.answer(question{}).Obstacle; got != want && !strings.HasPrefix(want, "2 of 3") {
					t.Errorf("it tells others\n%s, want\n%s", got, want)
				}
			})
		}
	}
}

// An instance at a second address, as behind a load balancer, has no wrong Advertise.
func TestASecondAddressIsNoWrongAdvertise(t *testing.T) {
	c, _ := pair()
	c.joinToo("vip:1")
	who := InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Settings: c.self.settings, Rules: 3,
		WallUnixMS: c.wall}
	c.tell("b:1", who)
	c.tell("vip:1", who)
	if text := c.roll().culprit(); text != "" || len(c.sight().strays()) != 0 {
		t.Errorf("it names %q", text)
	}
	c.end("b:1", Refused) // the instance has just ended, and the answer at vip:1 is older
	c.now += 3 * time.Second
	if text := c.roll().culprit(); text != "" {
		t.Errorf("it names %q by an old answer", text)
	}
}

// Two of three voters have lost their directories, and answer as newborns.
func TestVotersWithoutTheirDirectoriesAreNamed(t *testing.T) {
	const kept, lost = "runs without this group's log, from a new directory: stop it and start it with its old " +
		"directory", "run without this group's log, from a new directory: stop them and start them with their old directory"
	s := Settings{Founders: []string{"a", "b", "c"}, Voters: 3, SessionTTL: simTTL, Grace: simTTL}
	for name, c := range map[string]struct {
		newborn []meeting
		want    []string
		never   string
	}{
		"both answer": {[]meeting{{name: "b", addr: "b:1"}, {name: "c", addr: "c:1"}},
			[]string{`"b" (b:1), "c" (c:1) ` + lost, "give the group up with Recover on this instance"},
			"cannot be reached"},
		"one answers at another address": {[]meeting{{name: "b", addr: "x:1"}},
			[]string{`"b" (x:1) ` + kept, `of its voters, "c" (c:1) (no answer `, "cannot be reached: bring them back"}, ""},
		"none answers": {nil,
			[]string{`of its voters, "b" (b:1) (no answer `, `"c" (c:1) (no answer `}, "without this group's log"},
	} {
		t.Run(name, func(t *testing.T) {
			voters := []Voter{{Raft: 1, Instance: nodeidtest.ID(5), Addr: "a:1", Life: 1},
				{Raft: 2, Instance: nodeidtest.ID(6), Addr: "b:1", Life: 1},
				{Raft: 3, Instance: nodeidtest.ID(7), Addr: "c:1", Life: 1}}
			charter := Charter{Group: 99, Settings: s, Rules: 3, Voters: voters, List: []Listed{
				{nodeidtest.ID(5), "a", "a:1"}, {nodeidtest.ID(6), "b", "b:1"}, {nodeidtest.ID(7), "c", "c:1"}}}
			core := New(Config{Instance: nodeidtest.ID(5), Name: "a", Addr: "a:1", Settings: s, Rules: 3, Durable: true,
				Life: 2, Stored: &State{Instance: nodeidtest.ID(5), Addr: "a:1", Phase: Member, Group: 99, Charter: &charter,
					Settings: s, Voters: voters, At: 1, Raft: 1}})
			core.now, core.wall, core.directory.settling = time.Second, 1_000_000, false
			core.Places([]Entry{{Name: "x", Addrs: []string{"a:1", "b:1", "c:1", "x:1"}, Resolved: always}}, nil)
			core.arrange()
			for i, m := range c.newborn {
				core.tell(m.addr, InstanceInfo{Instance: nodeidtest.ID(uint64(20 + i)), Name: m.name, Addr: m.addr, Settings: s,
					Rules: 3, WallUnixMS: core.wall, Durable: true, Life: 1})
			}
			got := core.Waiting()
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("waits for\n%s, want in it\n%s", got, want)
				}
			}
			if c.never != "" && strings.Contains(got, c.never) {
				t.Errorf("waits for\n%s, and says %q", got, c.never)
			}
		})
	}
}
