package founding

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// A text that was cut inside a character could not be decoded: the instance that sent it would
// count as one of another version, and a directory with it could not be opened.
func TestTextsAreCutBetweenCharacters(t *testing.T) {
	one := nodeidtest.ID(1)
	state := func(change func(s *State, text string), read func(s *State) string) func(string) string {
		return func(text string) string {
			s := State{Instance: one}
			change(&s, text)
			got, err := DecodeState(s.Append(nil))
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return read(&got)
		}
	}
	for name, c := range map[string]struct {
		most int
		cut  func(string) string
	}{
		"an obstacle": {maxTextBytes, func(text string) string {
			w, err := decodeInfo(appendInfo(nil, InstanceInfo{Instance: one, Obstacle: text}))
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return w.Obstacle
		}},
		"the detail of a verdict": {maxTextBytes, func(text string) string {
			v, err := decodeVerdict(appendVerdict(nil, verdict{Detail: text}))
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return v.Detail
		}},
		"the detail of an answer": {maxTextBytes, func(text string) string {
			a, err := DecodePrepared(one, appendPrepared(nil, PrepareAnswer{Detail: text}))
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return a.Detail
		}},
		"an address in a directory": {maxAddrBytes, state(func(s *State, text string) { s.Addr = text },
			func(s *State) string { return s.Addr })},
		"a reason in a directory": {maxReasonBytes, state(func(s *State, text string) { s.Refused = text },
			func(s *State) string { return s.Refused })},
	} {
		limits.CutTexts(t, name, c.most, "", c.cut)
	}
}

// What a message may have at most is decoded, and one more is not.
func TestMessagesAtTheirBounds(t *testing.T) {
	text := func(n int) string { return strings.Repeat("t", n) }
	info := func(w InstanceInfo) bool {
		w.Instance = nodeidtest.ID(1)
		_, err := decodeInfo(appendInfo(nil, w))
		return err == nil
	}
	limits.AtMost(t, "maxNameBytes", maxNameBytes, func(n int) bool { return info(InstanceInfo{Name: text(n)}) })
	limits.AtMost(t, "maxAddrBytes", maxAddrBytes, func(n int) bool { return info(InstanceInfo{Addr: text(n)}) })
	limits.AtMost(t, "maxTextBytes", maxTextBytes, func(n int) bool {
		_, err := decodeVerdict(appendText(append(header(nil, kindVerdict), 0, 0), text(n)))
		return err == nil
	})
	limits.AtMost(t, "maxReasonBytes", maxReasonBytes, func(n int) bool {
		r := &reader{b: appendText(nil, text(n))}
		return r.text(maxReasonBytes) == text(n) && r.done() == nil
	})
	limits.AtMost(t, "maxAt", uint64(maxAt), func(n uint64) bool { return info(InstanceInfo{At: n}) })
	limits.AtMost(t, "maxVoters", maxVoters, func(n int) bool {
		var voters []Voter
		for i := range n {
			voters = append(voters, Voter{Raft: uint64(i + 1), Instance: nodeidtest.ID(uint64(i + 1)), Addr: "a:1"})
		}
		_, err := DecodeVoters(AppendVoters(nil, voters))
		return err == nil
	})
	limits.AtMost(t, "maxSupersedes", maxSupersedes, func(n int) bool {
		var groups []uint64
		for i := range n {
			groups = append(groups, uint64(i+1))
		}
		return info(InstanceInfo{Supersedes: groups})
	})
	limits.AtMost(t, "maxList of the founders in the settings", maxList, func(n int) bool {
		return info(InstanceInfo{Settings: Settings{Founders: texts(n)}})
	})
	charter := func(c Charter) bool {
		got, err := decodeProposal(appendProposal(nil, proposal{To: nodeidtest.ID(1), Charter: c}))
		return err == nil && len(got.Charter.List) == len(c.List) && got.Charter.FoundedUnixMS == c.FoundedUnixMS
	}
	formed := func(c Charter) bool { return !strings.Contains(c.malformed(), "no list or no founding time") }
	for name, accepts := range map[string]func(Charter) bool{"decoded": charter, "formed": formed} {
		limits.AtMost(t, "maxList of a charter, "+name, maxList, func(n int) bool {
			return accepts(Charter{Group: 1, List: listed(n)})
		})
		limits.AtMost(t, "maxWall of a charter, "+name, int64(maxWall), func(n int64) bool {
			return accepts(Charter{Group: 1, List: listed(1), FoundedUnixMS: n})
		})
	}
	limits.AtMost(t, "maxWall of an instance", int64(maxWall), func(n int64) bool {
		w, err := decodeInfo(appendInfo(nil, InstanceInfo{Instance: nodeidtest.ID(1), WallUnixMS: n, FloorUnixMS: n}))
		return err == nil && w.WallUnixMS == n && w.FloorUnixMS == n
	})
	limits.AtMost(t, "maxWall of a floor", int64(maxWall), func(n int64) bool {
		var c Core
		c.Floor(n)
		return c.directory.floor == n
	})
	limits.Below(t, "maxWall of a floor, above which a group is founded", int64(maxWall), func(n int64) bool {
		return above(n) == n+1
	})
	limits.AtMost(t, "maxMessageBytes", maxMessageBytes, func(n int) bool {
		return !open(append(header(nil, kindInfo), make([]byte, n-2)...), kindInfo).bad
	})
}

func texts(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%04d", i))
	}
	return all
}

func listed(n int) (all []Listed) {
	for i := range n {
		all = append(all, Listed{Instance: nodeidtest.ID(uint64(i + 1)), Addr: fmt.Sprint("a:", i)})
	}
	return all
}
