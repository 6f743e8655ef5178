package mortise

import "testing"

// TestConfigLowersMaxWaiting checks the limit of each kind of request under Config.MaxWaiting: the
// limit of the longest prefix of each of its keys, if it is lower than the request's own.
func TestConfigLowersMaxWaiting(t *testing.T) {
	limits := map[string]int{"": 90, "a/": 5, "a/b/": 7}
	for _, row := range []struct {
		demand demand
		limits map[string]int
		want   int
	}{
		{demand{Request: Request{Key: "a/1"}}, limits, 5},
		{demand{Request: Request{Key: "a/b/1"}}, limits, 7},
		{demand{Request: Request{Key: "a/"}}, limits, 5},
		{demand{Request: Request{Key: "a"}}, limits, 90},
		{demand{Request: Request{Key: "a/1", MaxWaiting: 3}}, limits, 3},
		{demand{Request: Request{Key: "a/1", MaxWaiting: 9}}, limits, 5},
		{demand{Request: Request{Key: "x", Also: []Part{{Key: "a/b/1"}, {Key: "a/1"}}}}, limits, 5},
		{demand{Request: Request{Key: "a/1", Also: []Part{{Key: "x"}, {Key: "a/b/1"}}}}, limits, 5},
		{demand{Request: Request{Key: "x", Also: []Part{{Key: "y"}, {Key: "a/b/1"}}}}, limits, 7},
		{demand{Request: Request{Key: "b"}}, map[string]int{"a": 5}, 0},
		{demand{Request: Request{Key: "b", MaxWaiting: 4}}, map[string]int{"a": 5}, 4},
		{demand{Request: Request{Key: "b", Also: []Part{{Key: "a"}}}}, map[string]int{"a": 5}, 5},
		{demand{Request: Request{Key: "b"}}, nil, 0},
		{demand{Request: Request{Key: "a/1", Try: true}}, limits, 0},
		{demand{Request: Request{Key: "a/1"}, sticky: true}, limits, 0},
		{demand{Request: Request{Key: "a/1"}, resume: 7}, limits, 0},
	} {
		d := row.demand
		if d.limit(row.limits); d.MaxWaiting != row.want {
			t.Errorf("%+v under %v: %d, want %d", row.demand, row.limits, d.MaxWaiting, row.want)
		}
	}
}
