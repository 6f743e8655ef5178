package mortise

import (
	"reflect"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// fullEvent returns an event of the leader whose fields are all set.
func fullEvent() *query.Event {
	return &query.Event{Position: 3, What: uint32(lockfsm.Ended), Cause: uint32(lockfsm.Evicted),
		Part: &query.Part{Key: []byte("k"), Mode: uint32(lockfsm.ModeS), Tree: true}, Token: 5, Session: 6,
		Record: replica.Record{Name: "holder"}.Encode(), At: 7000, By: []byte("by"), Reason: []byte("reason"),
		Data:  &query.Data{Value: []byte("data"), Revision: 9},
		Value: shown.Encode("value", map[string]string{"l": "x"}, nil)}
}

// TestEachFieldOfAnEventIsTold compares a whole event, and checks that each field of the leader's
// event changes it.
func TestEachFieldOfAnEventIsTold(t *testing.T) {
	got := eventOf(fullEvent())
	want := Event{Position: 3, Kind: EventFreed, Part: Part{Key: "k", Mode: Shared, Tree: true},
		Hold: Hold{Holder: "holder", Session: "6", Token: 5, Value: "value", Labels: map[string]string{"l": "x"}},
		At:   time.UnixMilli(7000), Cause: OutcomeForced, By: "by", Reason: "reason", Data: []byte("data"), Revision: 9}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range reflect.TypeFor[query.Event]().NumField() {
		field := reflect.TypeFor[query.Event]().Field(i)
		if !field.IsExported() {
			continue
		}
		e := fullEvent()
		reflect.ValueOf(e).Elem().Field(i).SetZero()
		if without := eventOf(e); reflect.DeepEqual(without, got) {
			t.Errorf("without %s the event is the same", field.Name)
		}
	}
	resumed := fullEvent()
	resumed.Cause, resumed.By = uint32(lockfsm.Resumed), replica.Record{Name: "former"}.Encode()
	if e := eventOf(resumed); e.By != "former" || e.Cause != OutcomeResumed {
		t.Errorf("%+v", e)
	}
}
