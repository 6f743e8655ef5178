package counter

import (
	"fmt"
	"strconv"
	"strings"
)

// kept is the number of additions whose results a counter has.
const kept = 64

// record is the data of a counter: a line with a word and the version of the form, a line with the
// value and the number of all additions, and a line for each of the last additions, the latest at
// the end. It has at most 3 KiB.
type record struct {
	value int64
	count uint64
	last  []result
}

type result struct {
	id    string
	value int64 // directly after the addition
}

const form = "counter 1\n"

func (r *record) encode() []byte {
	b := fmt.Appendf(nil, "%s%d %d\n", form, r.value, r.count)
	for _, one := range r.last {
		b = fmt.Appendf(b, "%s %d\n", one.id, one.value)
	}
	return b
}

// parse is the inverse of encode. A counter without data is zero.
func parse(data []byte) (r record, ok bool) {
	if len(data) == 0 {
		return record{}, true
	}
	text, ok := strings.CutPrefix(string(data), form)
	if !ok {
		return record{}, false
	}
	first := true
	for line := range strings.Lines(text) {
		left, right, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var err1, err2 error
		if first {
			r.value, err1 = strconv.ParseInt(left, 10, 64)
			r.count, err2 = strconv.ParseUint(right, 10, 64)
			first = false
		} else {
			one := result{id: left}
			one.value, err1 = strconv.ParseInt(right, 10, 64)
			r.last = append(r.last, one)
		}
		if err1 != nil || err2 != nil {
			return record{}, false
		}
	}
	return r, !first && len(r.last) <= kept && uint64(len(r.last)) <= r.count
}

func (r *record) result(id string) (value int64, made bool) {
	for _, one := range r.last {
		if one.id == id {
			return one.value, true
		}
	}
	return 0, false
}

// forgets reports whether r may lack the result of an addition that was first tried when the
// counter had known additions. A counter with fewer additions has been removed meanwhile.
func (r *record) forgets(known uint64) bool {
	return r.count < known || r.count-uint64(len(r.last)) > known
}

// add makes an addition, unless the value would exceed an int64.
func (r *record) add(id string, delta int64) (value int64, made bool) {
	if value = r.value + delta; (value > r.value) != (delta > 0) && delta != 0 {
		return 0, false
	}
	r.value, r.count = value, r.count+1
	r.last = append(r.last, result{id, value})
	r.last = r.last[max(0, len(r.last)-kept):]
	return value, true
}
