package founding

import (
	"encoding/binary"

	"github.com/mortise-lock/mortise/internal/plain"
)

func appendQuestion(b []byte, q question) []byte {
	b = header(b, kindQuestion)
	b = binary.AppendUvarint(b, q.Group)
	b = appendBool(b, q.Bound)
	b = binary.AppendUvarint(b, q.Life)
	b = binary.AppendUvarint(b, q.Boot)
	return appendBool(appendBool(b, q.Resuming), q.Founds)
}

func decodeQuestion(b []byte) (question, error) {
	r := open(b, kindQuestion)
	q := question{Group: r.uint(), Bound: r.bool(), Life: r.uint(), Boot: r.uint(), Resuming: r.bool(),
		Founds: r.bool()}
	return q, r.done()
}

func appendInfo(b []byte, w InstanceInfo) []byte {
	b = header(b, kindInfo)
	b = appendText(b, w.Name)
	b = appendText(b, w.Addr)
	b = append(b, byte(w.Phase))
	b = appendBool(b, w.Leader)
	b = appendBool(b, w.RefusedYou)
	b = binary.AppendUvarint(b, w.Group)
	b = appendSettings(b, w.Settings)
	b = binary.AppendUvarint(b, uint64(w.Rules))
	b = binary.AppendUvarint(b, uint64(min(max(w.WallUnixMS, 0), maxWall)))
	b = appendVoters(b, w.Voters)
	b = appendText(b, plain.Cut(w.Obstacle, maxTextBytes))
	b = binary.AppendUvarint(b, w.Life)
	b = binary.AppendUvarint(b, w.Boot)
	b = appendBool(b, w.Durable)
	b = appendBool(b, w.Resuming)
	b = binary.AppendUvarint(b, w.AskerLife)
	b = binary.AppendUvarint(b, w.AskerBoot)
	b = appendText(b, w.AskerAddr)
	b = binary.AppendUvarint(b, w.At)
	b = appendIDs(b, w.Supersedes)
	b = binary.AppendUvarint(b, uint64(min(max(w.FloorUnixMS, 0), maxWall)))
	met := w.Met[:min(len(w.Met), maxMet)]
	b = binary.AppendUvarint(b, uint64(len(met)))
	for _, addr := range met {
		b = appendText(b, addr)
	}
	return appendStanding(b, w.Standing)
}

func decodeInfo(b []byte) (InstanceInfo, error) {
	r := open(b, kindInfo)
	w := InstanceInfo{
		Name: r.text(maxNameBytes), Addr: r.text(maxAddrBytes), Phase: Phase(r.upTo(uint64(Member))),
		Leader: r.bool(), RefusedYou: r.bool(), Group: r.uint(), Settings: readSettings(r),
		Rules:      uint32(r.upTo(1<<32 - 1)),
		WallUnixMS: int64(r.upTo(maxWall)), Voters: readVoters(r), Obstacle: r.text(maxTextBytes),
		Life: r.uint(), Boot: r.uint(), Durable: r.bool(), Resuming: r.bool(), AskerLife: r.uint(), AskerBoot: r.uint(),
		AskerAddr: r.text(maxAddrBytes),
		At:        r.upTo(maxAt), Supersedes: r.ids(maxSupersedes), FloorUnixMS: int64(r.upTo(maxWall)),
	}
	for range r.length(maxMet, 1) {
		w.Met = append(w.Met, r.text(maxAddrBytes))
	}
	w.Standing = readStanding(r)
	if (w.Phase == Newborn) != (w.Group == 0) {
		r.fail()
	}
	return w, r.done()
}

func appendProposal(b []byte, p proposal) []byte {
	b = header(b, kindProposal)
	b = append(b, p.To[:]...)
	return appendCharter(b, &p.Charter)
}

func appendCharter(b []byte, c *Charter) []byte {
	b = binary.AppendUvarint(b, c.Group)
	b = binary.AppendUvarint(b, uint64(min(max(c.FoundedUnixMS, 0), maxWall)))
	b = appendSettings(b, c.Settings)
	b = binary.AppendUvarint(b, uint64(c.Rules))
	b = binary.AppendUvarint(b, uint64(len(c.List)))
	for _, l := range c.List {
		b = append(b, l.Instance[:]...)
		b = appendText(b, l.Name)
		b = appendText(b, l.Addr)
	}
	return appendIDs(appendVoters(b, c.Voters), c.Supersedes)
}

func decodeProposal(b []byte) (proposal, error) {
	r := open(b, kindProposal)
	p := proposal{To: r.instance(), Charter: readCharter(r)}
	return p, r.done()
}

func readCharter(r *reader) Charter {
	group, founded, settings, rules := r.uint(), int64(r.upTo(maxWall)), readSettings(r), uint32(r.upTo(1<<32-1))
	var list []Listed
	for range r.length(maxList, 3) {
		list = append(list, Listed{Instance: r.instance(), Name: r.text(maxNameBytes), Addr: r.text(maxAddrBytes)})
	}
	return Charter{
		Group: group, FoundedUnixMS: founded, Settings: settings, Rules: rules, List: list, Voters: readVoters(r),
		Supersedes: r.ids(maxSupersedes),
	}
}

func appendVerdict(b []byte, v verdict) []byte {
	b = header(b, kindVerdict)
	b = binary.AppendUvarint(b, v.Group)
	b = append(b, byte(v.Refusal))
	return appendText(b, plain.Cut(v.Detail, maxTextBytes))
}

func decodeVerdict(b []byte) (verdict, error) {
	r := open(b, kindVerdict)
	// A refusal counts even if only a newer version defines its reason.
	v := verdict{Group: r.uint(), Refusal: Refusal(r.upTo(127)), Detail: r.text(maxTextBytes)}
	return v, r.done()
}

func appendSettings(b []byte, s Settings) []byte {
	b = binary.AppendUvarint(b, uint64(max(s.Replicas, 0)))
	b = binary.AppendUvarint(b, uint64(len(s.Founders)))
	for _, f := range s.Founders {
		b = appendText(b, f)
	}
	b = binary.AppendUvarint(b, uint64(max(s.Voters, 0)))
	b = appendDuration(b, s.SessionTTL)
	b = appendDuration(b, s.Grace)
	return appendBool(b, s.Solo)
}

func readSettings(r *reader) Settings {
	replicas := int(r.upTo(1 << 30))
	var founders []string
	for range r.length(maxList, 1) {
		founders = append(founders, r.text(maxNameBytes))
	}
	s := Settings{
		Replicas: replicas, Founders: founders, Voters: int(r.upTo(maxVoters)), SessionTTL: r.duration(),
		Grace: r.duration(), Solo: r.bool(),
	}
	return s.normal()
}

func appendVoters(b []byte, voters []Voter) []byte {
	b = binary.AppendUvarint(b, uint64(len(voters)))
	for _, v := range voters {
		b = binary.AppendUvarint(b, v.Raft)
		b = append(b, v.Instance[:]...)
		b = appendText(b, v.Addr)
		b = binary.AppendUvarint(b, v.Life)
		b = appendBool(b, v.Learner)
	}
	return b
}

func readVoters(r *reader) []Voter {
	var voters []Voter
	for range r.length(maxVoters, 5) {
		voters = append(voters, Voter{Raft: r.uint(), Instance: r.instance(), Addr: r.text(maxAddrBytes),
			Life: r.uint(), Learner: r.bool()})
	}
	return voters
}
