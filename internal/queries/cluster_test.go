package queries

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

func fullStatus() cluster.VoterStatus {
	c := cluster.VoterStatus{MayStop: true, AllLeaving: true, Due: true, Known: true,
		Leader: nodeidtest.ID(math.MaxUint64)}
	c.Report = voters.Report{Eligible: 1 << 30, Target: 7, Quorum: true, Due: true}
	for range maxListed {
		c.Report.Missing = append(c.Report.Missing, voters.Missing{
			ID: math.MaxUint64, Instance: nodeidtest.ID(math.MaxUint64), Name: strings.Repeat("n", maxNameBytes),
			SilentFor: math.MaxInt64, Heard: true,
		})
		c.Report.CannotSurvive = append(c.Report.CannotSurvive, math.MaxUint64)
		c.Remarks = append(c.Remarks, strings.Repeat("r", maxTextBytes))
	}
	c.Report.Surplus = &voters.Surplus{Running: 1 << 30, Replicas: 16, For: math.MaxInt64,
		Names: slices.Repeat([]string{strings.Repeat("n", maxNameBytes)}, maxListed)}
	c.Report.Next = voters.Step{Kind: voters.Transfer, Why: strings.Repeat("w", maxTextBytes)}
	return c
}

func answerOf(t testing.TB, c *cluster.VoterStatus) []byte {
	t.Helper()
	b, err := proto.Marshal(&query.VoterStatusAnswer{Leader: c.Leader[:], Status: voterStatusOf(c)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(b []byte) (cluster.StatusReply, error) {
	var a query.VoterStatusAnswer
	if err := proto.Unmarshal(b, &a); err != nil {
		return cluster.StatusReply{}, err
	}
	return statusReply(&a)
}

func TestVoterStatusReturns(t *testing.T) {
	full := fullStatus()
	for _, c := range []cluster.VoterStatus{full, {},
		{Leader: nodeidtest.ID(5), Report: voters.Report{Next: voters.Step{Why: "é"}}}} {
		if got, err := read(answerOf(t, &c)); err != nil || !reflect.DeepEqual(*got.VoterStatus, c) {
			t.Errorf("%+v came back as %+v, %v", c, got.VoterStatus, err)
		}
	}
	long := full
	long.Report.Missing = append(slices.Clone(full.Report.Missing), full.Report.Missing[0])
	long.Remarks = append(slices.Clone(full.Remarks), "one more")
	long.Report.CannotSurvive = append(slices.Clone(full.Report.CannotSurvive), 1)
	long.Report.Missing[0].Name = "n\xff"
	long.Report.Next.Why = strings.Repeat("é", maxTextBytes)
	got, err := read(answerOf(t, &long))
	if err != nil || len(got.VoterStatus.Report.Missing) != maxListed || len(got.VoterStatus.Remarks) != maxListed ||
		len(got.VoterStatus.Report.Next.Why) != maxTextBytes {
		t.Errorf("the cut answer came back as %+v, %v", got.VoterStatus, err)
	}
}

// setAlone gives v, or the field of v with this number, a value that is not zero. It descends into
// structs and into lists of one entry, and calls f with the path of each field that it has set
// alone.
func setAlone(v reflect.Value, path string, f func(path string)) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(3)
	case reflect.Array:
		v.Index(1).SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setAlone(v.Elem(), path, f)
		v.SetZero()
		return
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		setAlone(v.Index(0), path, f)
		v.SetZero()
		return
	case reflect.Struct:
		for i := range v.NumField() {
			setAlone(v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
		return
	default:
		panic(path + " has the kind " + v.Kind().String() + "; add it here")
	}
	f(path)
	v.SetZero()
}

// TestEachFieldOfAStatusReturnsAlone sets one field of a status after the other, and checks that
// this field arrives, and no other one.
func TestEachFieldOfAStatusReturnsAlone(t *testing.T) {
	unsent := []string{".Report.Votes", ".Report.Next.ID", ".Report.Next.Instance", ".Report.Next.Promote",
		".Report.Next.Demote", ".Report.Next.Remove", ".Report.Next.Next"}
	var c cluster.VoterStatus
	seen := 0
	setAlone(reflect.ValueOf(&c).Elem(), "", func(path string) {
		seen++
		want := c
		switch {
		case slices.Contains(unsent, path):
			want.Report.Votes, want.Report.Next = 0, voters.Step{}
		case path == ".Report.Due":
			want.Report.Due = false // it is that of the status
		case path == ".Due":
			want.Report.Due = true
		}
		got, err := read(answerOf(t, &c))
		if err != nil || !reflect.DeepEqual(*got.VoterStatus, want) {
			t.Errorf("%s alone came back as %+v, %v", path, got.VoterStatus, err)
		}
	})
	if seen < 25 {
		t.Errorf("only %d fields were set", seen)
	}
	leader := nodeidtest.ID(4)
	got, err := statusReply(&query.VoterStatusAnswer{Leader: leader[:], Addr: "a:1"})
	if want := (cluster.StatusReply{Leader: leader, Addr: "a:1"}); err != nil || got != want {
		t.Errorf("the place of the leader came back as %+v, %v", got, err)
	}
}

func TestAnAdviceBeyondItsBoundsIsRefused(t *testing.T) {
	full := fullStatus()
	long := strings.Repeat("x", maxTextBytes+1)
	for what, spoil := range map[string]func(a *query.VoterStatusAnswer){
		"leader":   func(a *query.VoterStatusAnswer) { a.Leader = a.Leader[1:] },
		"address":  func(a *query.VoterStatusAnswer) { a.Addr = long },
		"eligible": func(a *query.VoterStatusAnswer) { a.Status.Eligible++ },
		"target":   func(a *query.VoterStatusAnswer) { a.Status.Target = 1<<30 + 1 },
		"kind":     func(a *query.VoterStatusAnswer) { a.Status.Next = 256 },
		"why":      func(a *query.VoterStatusAnswer) { a.Status.Why = long },
		"remark":   func(a *query.VoterStatusAnswer) { a.Status.Remarks[9] = long },
		"remarks":  func(a *query.VoterStatusAnswer) { a.Status.Remarks = append(a.Status.Remarks, "") },
		"missing": func(a *query.VoterStatusAnswer) {
			a.Status.Missing = append(a.Status.Missing,
				&query.Missing{})
		},
		"cannot survive": func(a *query.VoterStatusAnswer) { a.Status.CannotSurvive = append(a.Status.CannotSurvive, 1) },
		"instance":       func(a *query.VoterStatusAnswer) { a.Status.Missing[3].Instance = []byte("short") },
		"name":           func(a *query.VoterStatusAnswer) { a.Status.Missing[3].Name = long },
		"surplus":        func(a *query.VoterStatusAnswer) { a.Status.Surplus.Running++ },
		"its names": func(a *query.VoterStatusAnswer) {
			a.Status.Surplus.Names = append(a.Status.Surplus.Names, "")
		},
		"one of them":  func(a *query.VoterStatusAnswer) { a.Status.Surplus.Names[3] = long },
		"its replicas": func(a *query.VoterStatusAnswer) { a.Status.Surplus.Replicas = 1<<30 + 1 },
		"its time":     func(a *query.VoterStatusAnswer) { a.Status.Surplus.For = -1 },
		"silence":      func(a *query.VoterStatusAnswer) { a.Status.Missing[3].SilentFor = -1 },
	} {
		var a query.VoterStatusAnswer
		if err := proto.Unmarshal(answerOf(t, &full), &a); err != nil {
			t.Fatal(err)
		}
		if _, err := statusReply(&a); err != nil {
			t.Fatal(err)
		}
		spoil(&a)
		if got, err := statusReply(&a); err == nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// FuzzAdvice checks that an accepted answer is within all limits, and is unchanged after encoding
// and decoding.
func FuzzAdvice(f *testing.F) {
	full := fullStatus()
	f.Add(answerOf(f, &full))
	leader := nodeidtest.ID(4)
	elsewhere, err := proto.Marshal(&query.VoterStatusAnswer{Leader: leader[:], Addr: "a:1"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(elsewhere)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := read(b)
		if err != nil || a.VoterStatus == nil {
			return
		}
		if again, err := read(answerOf(t, a.VoterStatus)); err != nil || !reflect.DeepEqual(again.VoterStatus,
			a.VoterStatus) {
			t.Fatalf("%+v came back as %+v, %v", a.VoterStatus, again.VoterStatus, err)
		}
	})
}

// setTexts gives every text below v a value, and every list a length. It returns how many texts
// there are.
func setTexts(v reflect.Value, text string, length int) (texts int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return 1
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return setTexts(v.Elem(), text, length)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), length, length))
		for i := range length {
			texts += setTexts(v.Index(i), text, length)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			texts += setTexts(v.Field(i), text, length)
		}
	}
	return texts
}

// eachText calls f for every text below v.
func eachText(v reflect.Value, f func(string)) {
	switch v.Kind() {
	case reflect.String:
		f(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachText(v.Field(i), f)
		}
	}
}

// TestAdviceAroundItsBounds encodes a status whose lists and texts are a little shorter than the
// limits, as long, and longer, and whose texts are cut at every byte of a character. A new text of
// the status is covered, because the test finds it by reflection.
func TestAdviceAroundItsBounds(t *testing.T) {
	for _, char := range []string{"é", "€", "😀", "\xff"} {
		for shift := range len(char) + 1 {
			for _, length := range []int{1, maxListed - 1, maxListed, maxListed + 1} {
				text := strings.Repeat("a", shift) + strings.Repeat(char, 2*maxTextBytes/len(char))
				if length > 1 {
					text = text[:shift+4*len(char)]
				}
				var c cluster.VoterStatus
				set := setTexts(reflect.ValueOf(&c).Elem(), text, length)
				got, err := read(answerOf(t, &c))
				if err != nil {
					t.Fatalf("%d texts of %q, lists of %d: %v", set, char, length, err)
				}
				want, most := strings.ToValidUTF8(text, "?"), 0
				eachText(reflect.ValueOf(got.VoterStatus).Elem(), func(s string) {
					if most = max(most, len(s)); s != "" && !strings.HasPrefix(want, s) {
						t.Errorf("%q was cut to %q", want, s)
					}
				})
				if least := min(len(want), maxTextBytes-len(char)); most < least {
					t.Errorf("the longest text has %d bytes, want at least %d", most, least)
				}
				if n := len(got.VoterStatus.Remarks); n != min(length, maxListed) {
					t.Errorf("%d of %d remarks", n, length)
				}
			}
		}
	}
}
