package mortise

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestEveryMistakeIsReportedAtOnceByFieldName(t *testing.T) {
	long := strings.Repeat("x", 200)
	_, err := Start(context.Background(), Config{
		Name: "a\x00b", Cluster: long, Bind: "nonsense", Advertise: "0.0.0.0:80",
		Join:     []string{"host", ":1", "h:0", "h:99999"},
		Replicas: 2000, Founders: []string{"a", "a", "", long}, Voters: 4, Zone: long, SessionTTL: time.Millisecond,
		Grace: 2 * time.Hour, MaxSessionBytes: 2 << 40, MaxGroupBytes: 5,
		MaxWaiting: map[string]int{"a/": 0},
	})
	if err == nil {
		t.Fatal("Start accepted a configuration in which every field is wrong")
	}
	for _, field := range []string{
		"Name", "Cluster", "Bind", "Advertise", "Join[0]", "Join[1]", "Join[2]", "Join[3]", "Replicas", "Founders",
		"Founders[2]",
		"Founders[3]", "Voters", "Zone", "SessionTTL", "Grace", "MaxSessionBytes", "MaxGroupBytes", `MaxWaiting["a/"]`,
	} {
		if !strings.Contains(err.Error(), "Config."+field+": ") {
			t.Errorf("the error does not name Config.%s:\n%v", field, err)
		}
	}
}

func TestMistakesSayTheWayOut(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		want   string
	}{
		{"open port", Config{Bind: "0.0.0.0:0"}, "set Insecure"},
		{"open by default", Config{Join: []string{"a:1"}, Replicas: 3}, "set Insecure"},
		{"too many Replicas", Config{Join: []string{"a:1"}, Replicas: 17, Insecure: true},
			"not between 1 and 16; for a larger fleet set Founders"},
		{"Replicas alone", Config{Replicas: 3}, "list the addresses of the other instances"},
		{"Founders alone", Config{Founders: []string{"a"}}, "list the addresses of the other instances"},
		{"Join alone", Config{Join: []string{"a:1"}, Bind: "127.0.0.1:0"}, "set either Replicas"},
		{"Join of no known form", Config{Join: []string{"a:1", "http://b:1"}, Replicas: 3, Insecure: true},
			`Config.Join[1]: "http://b:1" begins with "http://"`},
		{"the forms of Join", Config{Join: []string{"dns://a:1"}, Replicas: 3, Insecure: true},
			"host:port, dns:///name:port, srv:///name or file:///path"},
		{"JoinFunc alone", Config{JoinFunc: func(context.Context) ([]string, error) { return nil, nil },
			Insecure: true}, "set either Replicas"},
		{"both", Config{Join: []string{"a:1"}, Bind: "127.0.0.1:0", Replicas: 1, Founders: []string{"a"}}, "not both"},
		{"negative Replicas", Config{Join: []string{"a:1"}, Bind: "127.0.0.1:0", Replicas: -1}, "not between 1 and 16"},
		{"grace too short", Config{Grace: time.Second}, "could still rely"},
		{"a port that is none", Config{Bind: "127.0.0.1:70000"}, "has no port between 0 and 65535"},
		{"a host that is none", Config{Bind: "a\x00b:1", Insecure: true}, "is not a host name or an IP address"},
		{"port 0 for others", Config{Bind: "127.0.0.1:0", Advertise: "127.0.0.1:0"}, "has port 0, which cannot be dialed"},
		{"no host for others", Config{Bind: "127.0.0.1:0", Advertise: ":7947"}, "names no host"},
	} {
		if _, err := Start(context.Background(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error that says %q", c.name, err, c.want)
		}
	}
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	alone := Config{Name: "a"}.withDefaults()
	if alone.Bind != "" || alone.Cluster != "mortise" || alone.Voters != 3 || alone.SessionTTL != 10*time.Second ||
		alone.Grace != 10*time.Second {
		t.Errorf("defaults without Join: %+v", alone)
	}
	joined := Config{Join: []string{"a:1"}}.withDefaults()
	if joined.Bind != ":7947" {
		t.Errorf("Bind with Join is %q, want :7947", joined.Bind)
	}
	if alone.History != nil {
		t.Error("something is recorded by default")
	}
	if joined.Name == "" {
		t.Error("Name has no default")
	}
	if err := alone.validate(); err != nil {
		t.Errorf("a Config with defaults only: %v", err)
	}
}

func TestConfigIsCopied(t *testing.T) {
	join := []string{"a:1"}
	c := Config{Join: join}.withDefaults()
	join[0] = "changed"
	if c.Join[0] != "a:1" {
		t.Error("the node shares Join with its caller")
	}
}
