//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// schema is the part of JSON Schema that openapi.json uses.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"` // a string, or a list of strings
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Closed     *json.RawMessage  `json:"additionalProperties"`
	Items      *schema           `json:"items"`
	Enum       []string          `json:"enum"`
	Pattern    string            `json:"pattern"`
	AnyOf      []schema          `json:"anyOf"`
}

type operation struct {
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema schema }
	}
}

type apiText struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

func readAPI(t *testing.T) (api apiText) {
	t.Helper()
	text, err := openAPI.ReadFile("openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &api)
	}
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// fault returns how a JSON value breaks a schema, or "".
func (api apiText) fault(s schema, v any, at string) string {
	if s.Ref != "" {
		return api.fault(api.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")], v, at)
	}
	if len(s.AnyOf) > 0 {
		fits := func(one schema) bool { return api.fault(one, v, at) == "" }
		if !slices.ContainsFunc(s.AnyOf, fits) {
			return fmt.Sprintf("%s: %v fits none of the alternatives", at, v)
		}
		return ""
	}
	kind := map[bool]string{true: "null"}[v == nil]
	switch v := v.(type) {
	case string:
		kind = "string"
		if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(v) {
			return fmt.Sprintf("%s: %q does not match %s", at, v, s.Pattern)
		}
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
			return fmt.Sprintf("%s: %q is not one of %q", at, v, s.Enum)
		}
	case float64:
		kind = "number"
	case bool:
		kind = "boolean"
	case []any:
		kind = "array"
		for i, one := range v {
			if fault := api.fault(*s.Items, one, fmt.Sprintf("%s[%d]", at, i)); fault != "" {
				return fault
			}
		}
	case map[string]any:
		kind = "object"
		for _, name := range s.Required {
			if _, has := v[name]; !has {
				return fmt.Sprintf("%s: %s is missing", at, name)
			}
		}
		for name, one := range v {
			part, known := s.Properties[name]
			if !known && s.Closed != nil && string(*s.Closed) == "false" {
				return fmt.Sprintf("%s: %s is not described", at, name)
			}
			if !known {
				continue
			}
			if fault := api.fault(part, one, at+"."+name); fault != "" {
				return fault
			}
		}
	}
	if s.Type != nil && !strings.Contains(fmt.Sprint(s.Type), kind) {
		return fmt.Sprintf("%s: %v is %s, want %v", at, v, kind, s.Type)
	}
	return ""
}

// operationFault returns how the answer of an operation breaks the description, or "".
func (api apiText) operationFault(o operation, code int, answer map[string]any) string {
	described, is := o.Responses[fmt.Sprint(code)]
	if !is {
		described = o.Responses["default"]
	}
	s := described.Content["application/json"].Schema
	if s.Ref == "" {
		return "the answer is not described"
	}
	return api.fault(s, answer, "answer")
}

// answerFault is operationFault for a POST.
func (api apiText) answerFault(path string, code int, answer map[string]any) string {
	return api.operationFault(api.Paths[path]["post"], code, answer)
}

func TestTheDescriptionNamesAllRoutes(t *testing.T) {
	var routes, described []string
	for _, file := range []string{"door.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?:post|get|getAnswer|HandleFunc)\((?:mux, )?"(POST |GET )?(/[^"]+)"`).
			FindAllStringSubmatch(string(text), -1) {
			routes = append(routes, found[2])
		}
	}
	for path := range readAPI(t).Paths {
		described = append(described, path)
	}
	routes = slices.DeleteFunc(routes, func(path string) bool { // pages and texts for other programs
		return path == "/metrics" || strings.HasPrefix(path, "/console/")
	})
	slices.Sort(routes)
	slices.Sort(described)
	if len(routes) < 15 || !slices.Equal(slices.Compact(routes), described) {
		t.Errorf("the agent has the routes\n%q, described are\n%q", routes, described)
	}
}

func TestTheDescriptionNamesAllFields(t *testing.T) {
	api := readAPI(t)
	described := map[string]string{}
	for path, all := range api.Paths {
		for name, s := range all["post"].RequestBody.Content["application/json"].Schema.Properties {
			if s.Ref != "" {
				s = api.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
			}
			if before, is := described[name]; is && before != fmt.Sprint(s.Type) {
				t.Errorf("%s: %s is %v, elsewhere %s", path, name, s.Type, before)
			}
			described[name] = fmt.Sprint(s.Type)
		}
	}
	fields := map[string]string{}
	for f := range reflect.TypeFor[asked]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch f.Type {
		case reflect.TypeFor[mortise.Token](), reflect.TypeFor[uint64](), reflect.TypeFor[string](),
			reflect.TypeFor[mortise.Mode](), reflect.TypeFor[[]byte]():
			fields[name] = "string"
		case reflect.TypeFor[bool]():
			fields[name] = "boolean"
		case reflect.TypeFor[int]():
			fields[name] = "integer"
		case reflect.TypeFor[*float64]():
			fields[name] = "number"
		case reflect.TypeFor[[]mortise.Part]():
			fields[name] = "array"
		default:
			fields[name] = "object"
		}
	}
	if !maps.Equal(fields, described) {
		t.Errorf("the agent reads\n%v, described are\n%v", fields, described)
	}
}

// visitor calls an agent, and checks each answer against the description.
type visitor struct {
	t    *testing.T
	api  apiText
	at   *agentProcess
	seen map[string]bool
}

func (v visitor) ask(method, path string, body any, want int) map[string]any {
	v.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		v.t.Fatal(err)
	}
	q, err := http.NewRequest(method, "http://localhost"+path, bytes.NewReader(text))
	if err != nil {
		v.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	r, err := v.at.client().Do(q)
	if err != nil {
		v.t.Fatal(err)
	}
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(said, &answer); err != nil || r.StatusCode != want {
		v.t.Fatalf("%s %v: %d, want %d: %s (%v)", path, body, r.StatusCode, want, said, err)
	}
	name, _, _ := strings.Cut(path, "?")
	v.seen[name] = v.seen[name] || r.StatusCode == http.StatusOK
	if fault := v.api.operationFault(v.api.Paths[name][strings.ToLower(method)], r.StatusCode, answer); fault != "" {
		v.t.Errorf("%s: %s\n%s", name, fault, said)
	}
	return answer
}

func (v visitor) post(path string, body object) map[string]any {
	v.t.Helper()
	return v.ask("POST", path, body, http.StatusOK)
}

func (v visitor) get(path string) map[string]any {
	v.t.Helper()
	return v.ask("GET", path, nil, http.StatusOK)
}

func TestTheAgentAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	v := visitor{t: t, api: readAPI(t), at: f.agents[0], seen: map[string]bool{}}
	one := v.post("/v1/leases", object{"name": "one", "ttl_seconds": 60})["lease"]
	two := v.post("/v1/leases", object{"name": "two", "ttl_seconds": 60})["lease"]

	lock := v.post("/v1/lock", object{"lease": one, "key": "k", "notice": true, "value": "paints",
		"labels": object{"by": "test"}, "lock_delay_seconds": 60, "max_idle_seconds": 60})
	refused := v.ask("POST", "/v1/lock", object{"lease": two, "key": "k", "wait_seconds": 0}, http.StatusConflict)
	if held, _ := refused["held"].(map[string]any); held["value"] != "paints" {
		t.Errorf("the holder is %v", held)
	}
	v.ask("POST", "/v1/lock", object{"lease": two, "key": "k", "wait_seconds": 0.2}, http.StatusConflict)
	kept := v.post("/v1/keepalive", object{"lease": one})["locks"].([]any)
	if len(kept) != 1 || kept[0].(map[string]any)["wanted"] != true {
		t.Errorf("a request has waited, and the keepalive says %v", kept)
	}
	v.post("/v1/beat", object{"lease": one, "token": lock["token"]})
	v.post("/v1/value", object{"lease": one, "token": lock["token"], "value": "dries"})
	if key := v.get("/v1/key?key=k"); key["queue"].([]any)[0].(map[string]any)["value"] != "dries" {
		t.Errorf("the value was changed, and the key is %v", key)
	}
	v.post("/v1/put", object{"key": "k/data", "data": []byte("1"), "lease": one, "token": lock["token"]})
	v.post("/v1/downgrade", object{"lease": one, "token": lock["token"]})
	shared := v.post("/v1/lock", object{"lease": two, "key": "k", "mode": "shared", "wait_seconds": 0})
	v.post("/v1/unlock", object{"lease": two, "token": shared["token"]})
	v.post("/v1/detach", object{"lease": one, "token": lock["token"]})
	v.ask("POST", "/v1/unlock", object{"lease": one, "token": lock["token"]}, http.StatusNotFound)
	v.ask("POST", "/v1/put", object{"key": "k/data", "lease": one, "token": lock["token"]}, http.StatusNotFound)
	hold := v.post("/v1/lock", object{"lease": one, "key": "u", "mode": "upgradable"})
	reader := v.post("/v1/lock", object{"lease": two, "key": "u", "mode": "shared", "wait_seconds": 0})
	v.ask("POST", "/v1/upgrade", object{"lease": one, "token": hold["token"], "wait_seconds": 0}, http.StatusBadRequest)
	v.ask("POST", "/v1/upgrade", object{"lease": one, "token": hold["token"], "wait_seconds": 0.2}, http.StatusConflict)
	v.ask("POST", "/v1/upgrade", object{"lease": two, "token": reader["token"]}, http.StatusBadRequest)
	if queue := v.get("/v1/key?key=u")["queue"].([]any); queue[0].(map[string]any)["mode"] != "upgradable" {
		t.Errorf("the queue is %v", queue)
	}
	v.post("/v1/unlock", object{"lease": two, "token": reader["token"]})
	up := v.post("/v1/upgrade", object{"lease": one, "token": hold["token"]})
	v.ask("POST", "/v1/upgrade", object{"lease": one, "token": hold["token"]}, http.StatusBadRequest)
	v.ask("POST", "/v1/lock", object{"lease": two, "key": "u", "mode": "shared", "wait_seconds": 0}, http.StatusConflict)
	v.post("/v1/unlock", object{"lease": one, "token": up["token"]})
	again := v.post("/v1/lock", object{"lease": two, "key": "u", "mode": "shared", "wait_seconds": 0})
	v.post("/v1/unlock", object{"lease": two, "token": again["token"]})
	v.post("/v1/unlock", object{"lease": one, "token": hold["token"]})
	node := v.post("/v1/lock", object{"lease": one, "key": "a/b", "tree": true})
	v.ask("POST", "/v1/lock", object{"lease": two, "key": "a", "tree": true, "wait_seconds": 0}, http.StatusConflict)
	v.post("/v1/regain", object{"lease": one, "token": node["token"], "wait_seconds": 0})
	v.post("/v1/unlock", object{"lease": one, "token": node["token"]})
	resumed := v.post("/v1/lock", object{"lease": two, "key": "k", "resume": lock["token"]})
	if v.post("/v1/check", object{"lease": two, "token": resumed["token"]})["held"] != true {
		t.Error("the resumed lock is not held")
	}
	v.get("/v1/key?key=k")
	v.ask("POST", "/v1/lock", object{"lease": two, "key": "k", "resume": "1"}, http.StatusNotFound)
	v.post("/v1/lock", object{"lease": two, "key": "s", "sticky": true})
	v.ask("POST", "/v1/lock", object{"lease": two, "key": "s", "sticky": true, "max_waiting": 1}, http.StatusBadRequest)

	v.get("/v1/data?key=d")
	data := v.post("/v1/put", object{"key": "d", "data": []byte("42"), "request": "p"})
	if got := v.get("/v1/data?key=d"); got["data"] != "NDI=" || got["revision"] != data["revision"] {
		t.Errorf("the data is %v", got)
	}
	v.ask("POST", "/v1/put", object{"key": "d", "data": []byte("43")}, http.StatusConflict)
	v.post("/v1/put", object{"key": "d", "revision": data["revision"]})

	if leader := v.get("/v1/leader?name=e"); leader["leader"] != nil {
		t.Errorf("the answer before an election is %v", leader)
	}
	v.post("/v1/lock", object{"lease": one, "key": "e", "value": "10.0.0.7",
		"labels": object{"mortise.purpose": "election"}})
	if leader := v.get("/v1/leader?name=e"); leader["leader"] != "a" || leader["value"] != "10.0.0.7" {
		t.Errorf("the leader is %v", leader)
	}
	run := object{"ID": "1", "Operation": "OperationTypePlan", "Who": "ann", "Created": "2027-03-04T05:06:07.8Z"}
	v.ask("POST", "/v1/tofu?key=state&lock_delay_seconds=0&max_hold_seconds=60", run, http.StatusOK)
	v.ask("POST", "/v1/tofu?key=state", object{"ID": "2"}, http.StatusLocked)
	v.ask("POST", "/v1/tofu?key=state", object{}, http.StatusBadRequest)
	v.ask("DELETE", "/v1/tofu?key=state", run, http.StatusOK)
	ids := v.post("/v1/ids", object{"count": 3})
	if more := v.post("/v1/ids", object{}); ids["count"] != 3.0 || more["count"] != 1.0 || more["first"] == ids["first"] {
		t.Errorf("the IDs are %v, then %v", ids, more)
	}
	v.ask("POST", "/v1/ids", object{"count": 65537}, http.StatusBadRequest)
	v.get("/v1/keys")
	v.get("/v1/status")
	v.get("/v1/health")
	v.get("/v1/openapi.json")
	v.get("/readyz")
	v.get("/healthz")
	v.post("/v1/end", object{"lease": one})
	v.ask("POST", "/v1/end", object{"lease": one}, http.StatusNotFound)
	for path := range v.api.Paths {
		if !v.seen[path] && path != "/v1/hold" && path != "/v1/watch" {
			t.Errorf("%s was not tried", path)
		}
	}
}

// TestWantedIsTold checks the lines of a lease that lasts as long as its connection.
func TestWantedIsTold(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a")
	a := f.agents[0]
	hold, err := a.client().Post("http://localhost/v1/hold", "application/json", strings.NewReader(`{"name":"holder"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Body.Close()
	lines, api := json.NewDecoder(hold.Body), readAPI(t)
	next := func() (line map[string]any) {
		t.Helper()
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if fault := api.fault(schema{Ref: "#/components/schemas/Line"}, line, "line"); fault != "" {
			t.Error(fault)
		}
		return line
	}
	lease := next()["lease"]
	var lock lockText
	a.post(t, "/v1/lock", object{"lease": lease, "key": "k", "notice": true}, &lock)
	var other struct{ Lease string }
	a.post(t, "/v1/leases", object{}, &other)
	began := time.Now()
	a.post(t, "/v1/lock", object{"lease": other.Lease, "key": "k", "wait_seconds": 0.2}, nil)
	for line := next(); line["wanted"] != true || line["token"] != fmt.Sprint(uint64(lock.Token)); line = next() {
		if len(line) > 0 || time.Since(began) > patience {
			t.Fatalf("the line is %v", line)
		}
	}
}

type wantedLock struct{ holding }

func (wantedLock) Key() string             { return "k" }
func (wantedLock) Err() error              { return nil }
func (wantedLock) Wanted() <-chan struct{} { c := make(chan struct{}); close(c); return c }

// A client that keeps one connection for months must not make the agent remember all its locks.
func TestNewsForgetsReleasedLocks(t *testing.T) {
	ls, l := &leases{}, &lease{locks: map[mortise.Token]holding{}}
	told := map[mortise.Token]lockText{}
	for token := range mortise.Token(100) {
		l.locks[token] = wantedLock{}
		if news := ls.news(l, told); len(news) != 1 || news[0].Token != token || !news[0].Wanted {
			t.Fatalf("lock %d: the news is %+v", token, news)
		}
		if news := ls.news(l, told); len(news) != 0 {
			t.Fatalf("lock %d is told again: %+v", token, news)
		}
		delete(l.locks, token) // unlocked
	}
	if ls.news(l, told); len(told) != 0 {
		t.Errorf("%d released locks are remembered", len(told))
	}
}
