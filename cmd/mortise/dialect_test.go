//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

var writeKeys = flag.Bool("write-json-keys", false, "write testdata/json.txt anew")

func TestDialect(t *testing.T) {
	type inner struct {
		LeaseFor time.Duration
		Err      error
		Shadowed int
	}
	type outer struct {
		*inner
		Shadowed  string
		ID, TTLOf string
		Token     mortise.Token
		Revision  uint64
		Term      uint64
		Position  uint64 `json:"at_position,omitempty,string"`
		Since     time.Time
		When      time.Time
		List      []string
		Empty     []string `json:",omitempty"`
		Labels    map[string]string
		Held      *mortise.HeldError
		Any       any
		hidden    int
	}
	got, err := dialect(outer{
		inner:    &inner{LeaseFor: 1500 * time.Millisecond, Err: errors.New("no <luck>"), Shadowed: 1},
		Shadowed: "outer", Token: 1 << 60, Revision: 1 << 61,
		When: time.Date(2027, 1, 31, 18, 0, 0, 0, time.UTC), Labels: map[string]string{"Own.Label": "x"},
		Any: 2 * time.Second, hidden: 1,
		Held: &mortise.HeldError{Key: "k"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"lease_for_seconds":1.5`, `"error":"no \u003cluck\u003e"`, `"shadowed":"outer"`, `"id":""`, `"ttl_of":""`,
		`"token":"1152921504606846976"`,
		`"revision":"2305843009213693952"`, `"term":0`, `"when":"2027-01-31T18:00:00Z"`, `"list":[]`,
		`"labels":{"Own.Label":"x"}`, `"held":{"key":"k"`, `"any":2`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if strings.Contains(string(got), "since") || strings.Contains(string(got), "position") ||
		strings.Contains(string(got), "empty") || strings.Contains(string(got), "hidden") || !json.Valid(got) {
		t.Errorf("%s", got)
	}
	if strings.Count(string(got), "shadowed") != 1 {
		t.Errorf("%s", got)
	}
	if got, err = dialect(outer{}); err != nil || !json.Valid(got) {
		t.Errorf("%s, %v", got, err)
	}
}

// A JSON key that is removed or changes its type breaks programs that read it. Keys are derived
// from Go names, so renaming a field of the library can change a key.
func TestJSONKeysStay(t *testing.T) {
	types := []reflect.Type{}
	var collect func(t reflect.Type)
	collect = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() || slices.Contains(types, t) {
			return
		}
		types = append(types, t)
		for _, f := range fieldsOf(t) {
			collect(f.kind)
		}
	}
	for _, v := range []any{
		mortise.KeyInfo{}, mortise.Member{}, mortise.Status{}, mortise.Health{}, mortise.HeldError{}, happened{},
		seen{}, hot{}, checkupShown{}, statusShown{}, topShown{},
		startShown{}, secretShown{}, endedShown{}, sessionShown{}, dataShown{}, pinged{}, problem{}, lockText{}, checked{},
	} {
		collect(reflect.TypeOf(v))
	}
	var lines []string
	for _, of := range types {
		for _, f := range fieldsOf(of) {
			lines = append(lines, fmt.Sprintf("%s %s %s\n", of.Name(), f.key, written(f)))
		}
	}
	slices.Sort(lines)
	path, text := filepath.Join("testdata", "json.txt"), strings.Join(lines, "")
	if *writeKeys {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(path)
	if err != nil || string(was) != text {
		t.Errorf("%s has %v\n%s\nnow it is\n%s\n"+
			"If that is intended and README.md says so: go test -run %s -write-json-keys .",
			path, err, was, text, t.Name())
	}
}

func written(f member) string {
	kind := f.kind
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch {
	case f.quoted, kind == reflect.TypeFor[mortise.Token](), kind == reflect.TypeFor[error]():
		return "string"
	case kind == reflect.TypeFor[time.Time]():
		return "time"
	case kind == reflect.TypeFor[[]byte]():
		return "base64"
	case kind == reflect.TypeFor[time.Duration]():
		return "seconds"
	case kind.Kind() == reflect.Slice:
		return "list"
	case kind.Kind() == reflect.Struct, kind.Kind() == reflect.Map:
		return "object"
	case kind.Kind() == reflect.Bool, kind.Kind() == reflect.String:
		return kind.Kind().String()
	}
	return "number"
}

func TestOneDialect(t *testing.T) {
	t.Parallel()
	f := startFleet(t, true, "a", "b", "c")
	f.doctorSays(exitOK, "well: ")
	defer f.begin("exec sleep 1000", "-value", "12s", "orders/1").end()
	waits := f.command("run", "orders/1", "--", "true")
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = waits.Process.Kill(); _ = waits.Wait() }()
	f.waiting("orders/1", 1)
	f.mortise("data", "put", "orders/2", "x").wants(t, exitOK)
	var k struct {
		Queue []struct{ Token mortise.Token }
	}
	token := f.begin("exec sleep 1000", "orders/3")
	defer token.end()
	if err := json.Unmarshal([]byte(f.mortise("get", "orders/3", "-o", "json").out), &k); err != nil ||
		len(k.Queue) != 1 {
		t.Fatal(k, err)
	}
	said := map[string]string{}
	for _, command := range []string{
		"ls", "get orders/1", "data get orders/2", "data put orders/2 y", "top -count 1", "members", "sessions",
		"status", "doctor", "doctor orders/1", "ping -n 2",
		"secret -allow read* -for x", "unlock --force orders/3 --reason r --token " + tokenText(k.Queue[0].Token),
		"audit",
	} {
		args := strings.Fields(strings.ReplaceAll(command, "read*", "read%"))
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "read%", "read *")
		}
		said[command] = f.mortise(append(args, "-o", "json")...).out
	}
	client := f.agents[0].client()
	get := func(path string) {
		answer, err := client.Get("http://localhost" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		said[path] = string(text)
	}
	for _, path := range []string{"/v1/keys", "/v1/key?key=orders/1", "/v1/status", "/v1/health",
		"/console/status.json?key=orders/1&prefix=o"} {
		get(path)
	}
	post := func(path, body string) (answer map[string]any) {
		r, err := client.Post("http://localhost"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		said[fmt.Sprintf("%s, %d", path, r.StatusCode)] = string(text)
		_ = json.Unmarshal(text, &answer)
		return answer
	}
	lease, _ := post("/v1/leases", `{"ttl_seconds":10}`)["lease"].(string)
	post("/v1/lock", `{"lease":"`+lease+`","key":"k","wait_seconds":0.5}`)
	if held := post("/v1/lock", `{"lease":"`+lease+`","key":"orders/1","wait_seconds":0}`); held["held"] == nil {
		t.Errorf("busy: %v", held)
	}
	post("/v1/keepalive", `{"lease":"`+lease+`"}`)
	if wrong := post("/v1/leases", `{"ttl_seconds":"10s"}`); wrong["kind"] != "wrong" {
		t.Errorf("a text for a number of seconds: %v", wrong)
	}
	if wrong := post("/v1/leases", `{"ttl_seconds":-1}`); wrong["kind"] != "wrong" {
		t.Errorf("negative seconds: %v", wrong)
	}
	for what, text := range said {
		lines := 0
		for decoder := json.NewDecoder(strings.NewReader(text)); ; lines++ {
			var v any
			if err := decoder.Decode(&v); err == io.EOF {
				break
			} else if err != nil {
				t.Errorf("%s: %v: %s", what, err, text)
				break
			}
			for _, fault := range strange("", v) {
				t.Errorf("%s: %s in %s", what, fault, text)
			}
		}
		if lines == 0 {
			t.Errorf("%s says nothing: the test would see nothing", what)
		}
	}
}

// strange compares v with the form that dialect.go describes, and returns the deviations. It
// ignores the values of locks, because the holders choose these texts.
func strange(key string, v any) (faults []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, one := range v {
			if !regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`).MatchString(name) && key != "labels" {
				faults = append(faults, fmt.Sprintf("the key %q", name))
			}
			faults = append(faults, strange(name, one)...)
		}
	case []any:
		for _, one := range v {
			faults = append(faults, strange(key, one)...)
		}
	case nil:
		if key != "data" && key != "health" && key != "held" && key != "disk" {
			faults = append(faults, key+" is null")
		}
	case string:
		if regexp.MustCompile(`^([0-9.]+(h|m|s|ms|µs|ns))+$`).MatchString(v) && key != "value" {
			faults = append(faults, fmt.Sprintf("%s is the duration %q", key, v))
		}
		if _, err := time.Parse(time.RFC3339, v); err != nil && (key == "at" || key == "since" || key == "seen") {
			faults = append(faults, fmt.Sprintf("%s is the time %q", key, v))
		}
	case float64:
		if v >= 1e7 && !strings.HasSuffix(key, "bytes") {
			faults = append(faults, fmt.Sprintf("%s is %v: nanoseconds, or a number that should be a string", key, v))
		}
	}
	return faults
}

func TestStrangeSees(t *testing.T) {
	for _, text := range []string{
		`{"LeaseFor":1}`, `{"leaseFor":1}`, `{"a":[{"B":1}]}`, `{"took":"10s"}`, `{"took":1500000000}`,
		`{"at":"yesterday"}`, `{"queue":null}`, `{"a__b":1}`,
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil || len(strange("", v)) == 0 {
			t.Errorf("nothing is strange in %s, %v", text, err)
		}
	}
}
