package queries

import (
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

func TestAnEvictAtItsBounds(t *testing.T) {
	limits.AtMost(t, "maxByBytes", maxByBytes, func(n int) bool {
		return CheckEvict(&query.EvictRequest{Key: []byte("k"), Token: 1, By: []byte(strings.Repeat("b", n))}) == nil
	})
	limits.AtMost(t, "MaxValueBytes", lockfsm.MaxValueBytes, func(n int) bool {
		return CheckEvict(&query.EvictRequest{Key: []byte("k"), Token: 1, By: []byte("b"),
			Reason: []byte(strings.Repeat("r", n))}) == nil
	})
}

// The fields are tried one by one, each with the largest values of all others.
func TestAnAnswerAboutTheVotersAtItsBounds(t *testing.T) {
	full := fullStatus()
	reads := func(change func(a *query.VoterStatusAnswer)) bool {
		a := &query.VoterStatusAnswer{Status: voterStatusOf(&full)}
		change(a)
		_, err := statusReply(a)
		return err == nil
	}
	text := func(n int) string { return strings.Repeat("t", n) }
	limits.AtMost(t, "maxAddrBytes", maxAddrBytes, func(n int) bool {
		return reads(func(a *query.VoterStatusAnswer) { a.Addr = text(n) })
	})
	limits.AtMost(t, "maxKind", uint32(maxKind), func(n uint32) bool {
		return reads(func(a *query.VoterStatusAnswer) { a.Status.Next = n })
	})
	for name, field := range map[string]func(*query.VoterStatus) *uint32{
		"eligible": func(m *query.VoterStatus) *uint32 { return &m.Eligible },
		"target":   func(m *query.VoterStatus) *uint32 { return &m.Target },
		"running":  func(m *query.VoterStatus) *uint32 { return &m.Surplus.Running },
		"replicas": func(m *query.VoterStatus) *uint32 { return &m.Surplus.Replicas },
	} {
		limits.AtMost(t, "maxNumber, "+name, uint32(maxNumber), func(n uint32) bool {
			return reads(func(a *query.VoterStatusAnswer) { *field(a.Status) = n })
		})
	}
	for name, field := range map[string]func(*query.VoterStatus) *string{
		"missing": func(m *query.VoterStatus) *string { return &m.Missing[0].Name },
		"surplus": func(m *query.VoterStatus) *string { return &m.Surplus.Names[0] },
	} {
		limits.AtMost(t, "maxNameBytes, "+name, maxNameBytes, func(n int) bool {
			return reads(func(a *query.VoterStatusAnswer) { *field(a.Status) = text(n) })
		})
	}
	for name, field := range map[string]func(*query.VoterStatus) *string{
		"why":    func(m *query.VoterStatus) *string { return &m.Why },
		"remark": func(m *query.VoterStatus) *string { return &m.Remarks[0] },
	} {
		limits.AtMost(t, "maxTextBytes, "+name, maxTextBytes, func(n int) bool {
			return reads(func(a *query.VoterStatusAnswer) { *field(a.Status) = text(n) })
		})
	}
	for name, add := range map[string]func(*query.VoterStatus){
		"missing":        func(m *query.VoterStatus) { m.Missing = append(m.Missing, m.Missing[0]) },
		"cannot survive": func(m *query.VoterStatus) { m.CannotSurvive = append(m.CannotSurvive, 1) },
		"remarks":        func(m *query.VoterStatus) { m.Remarks = append(m.Remarks, "") },
		"names":          func(m *query.VoterStatus) { m.Surplus.Names = append(m.Surplus.Names, "") },
	} {
		limits.AtMost(t, "maxListed, "+name, maxListed, func(n int) bool {
			return reads(func(a *query.VoterStatusAnswer) {
				m := a.Status
				m.Missing, m.CannotSurvive, m.Remarks, m.Surplus.Names = m.Missing[:1], nil, nil, nil
				for range n {
					add(m)
				}
				if name == "missing" {
					m.Missing = m.Missing[1:]
				}
			})
		})
	}
}
