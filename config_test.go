package mortise

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/session"
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

// fullConfig returns a Config with another value in each field.
func fullConfig() Config {
	return Config{Name: "name", Cluster: "cluster", Bind: "bind:1", Advertise: "advertise:2", Join: []string{"join:3"},
		JoinFunc: func(context.Context) ([]string, error) { return []string{"func"}, nil }, Replicas: 4,
		Founders: []string{"name", "founder", "name"}, Voters: 5, Zone: "zone", Dir: "dir", DirFreeBytes: 6,
		SessionTTL: 7 * time.Second, Grace: 8 * time.Second, MaxSessionBytes: 9 << 20, MaxGroupBytes: 10 << 20,
		MaxWaiting: map[string]int{"p/": 11}, StickyLocks: 12, StickyUnused: 13 * time.Second, Secret: "secret",
		OldSecrets: []string{"old"}, TLS: &tls.Config{ServerName: "tls"}, TLSFiles: TLSFiles{"cert", "key", "ca"},
		TLSPeers: []string{"peer"}, TLSGuests: map[string]string{"guest": "lock *"}, Insecure: true, History: io.Discard,
		Hooks: &Hooks{}, Logger: slog.New(slog.DiscardHandler), warnings: []string{"warning"}}
}

// TestEachSettingReachesTheInstance compares the whole configuration of the instance with that of a
// node whose fields are all set.
func TestEachSettingReachesTheInstance(t *testing.T) {
	for i, full := range []Config{fullConfig(), {Name: "n", SessionTTL: time.Second, Grace: time.Minute}} {
		n := &Node{config: full}
		got := n.engineConfig(nil, outside.World{Rules: 14})
		if is, err := got.JoinFunc, error(nil); (is != nil) != (full.JoinFunc != nil) || is != nil {
			var list []string
			if list, err = is(t.Context()); err != nil || !slices.Equal(list, []string{"func"}) {
				t.Errorf("JoinFunc returns %q, %v", list, err)
			}
		}
		if a, is := got.Admin.(admin); !is || a.n != n || a.way == nil || got.Disks == nil {
			t.Errorf("requests of programs are answered by %+v", got.Admin)
		}
		denied := &NotAllowedError{Verb: "read"}
		if err := got.Translate(denied); !reflect.DeepEqual(err, (*session.NotAllowedError)(denied)) {
			t.Errorf("an error of Admin becomes %v", err)
		}
		want := instance.Config{Name: "name", Cluster: "cluster", Zone: "zone", Bind: "bind:1", Advertise: "advertise:2",
			Join: []string{"join:3"}, Dir: "dir", DirFreeBytes: 6, SessionTTL: 7 * time.Second, Stays: 12,
			StayIdle: 13 * time.Second, Logger: full.Logger, Version: version, History: io.Discard,
			Self: credentials.Peer{Tier: credentials.Root}, World: outside.World{Rules: 14},
			Group: replica.Settings{Replicas: 4, Founders: []string{"founder", "name"}, Voters: 5, SessionTTL: 7 * time.Second,
				Grace: 8 * time.Second, SessionBytes: 9 << 20, GroupBytes: 10 << 20}}
		if i == 1 {
			want = instance.Config{Name: "n", SessionTTL: time.Second, Version: version, Self: want.Self, World: want.World,
				Group: replica.Settings{SessionTTL: time.Second}, Alone: true, Unreachable: true}
		}
		if queued := full.Hooks != nil; got.Trace.Queued != queued || (got.Hooks != nil) != queued {
			t.Errorf("hooks: %+v", got.Trace)
		}
		got.JoinFunc, got.Admin, got.Translate, got.Disks, got.Hooks, got.Trace.Queued = nil, nil, nil, nil, nil, false
		if len(got.Group.Founders) == 0 {
			got.Group.Founders = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
}

// TestWhatIsSetIsKept sets each field of a Config alone. The defaults replace no field that is set,
// and depend on no other one but those that the comments of Config name.
func TestWhatIsSetIsKept(t *testing.T) {
	zero, full := Config{Name: "n"}.withDefaults(), reflect.ValueOf(fullConfig())
	for i := range full.NumField() {
		name := full.Type().Field(i).Name
		if name == "warnings" || name == "JoinFunc" {
			continue
		}
		c := Config{Name: "n"}
		reflect.ValueOf(&c).Elem().Field(i).Set(full.Field(i))
		want := zero
		reflect.ValueOf(&want).Elem().Field(i).Set(full.Field(i))
		switch name {
		case "Join":
			want.Bind = ":7947"
		case "SessionTTL":
			want.Grace = want.SessionTTL
		case "MaxSessionBytes":
			want.MaxGroupBytes = 256 << 20
		}
		got := c.withDefaults()
		if name == "Hooks" && got.Hooks == c.Hooks {
			t.Error("the node shares Hooks with its caller")
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("with %s alone: %+v\nwant %+v", name, got, want)
		}
	}
	want := Config{Name: "n", Cluster: "mortise", Voters: 3, DirFreeBytes: 64 << 20, SessionTTL: 10 * time.Second,
		Grace: 10 * time.Second, MaxSessionBytes: 64 << 20, MaxGroupBytes: 256 << 20, StickyLocks: 10_000,
		StickyUnused: time.Second, Logger: slog.Default()}
	if !reflect.DeepEqual(zero, want) {
		t.Errorf("the defaults are %+v\nwant %+v", zero, want)
	}
	large := Config{MaxSessionBytes: 1 << 30, JoinFunc: fullConfig().JoinFunc}.withDefaults()
	if large.MaxGroupBytes != 1<<30 || large.Bind != ":7947" {
		t.Errorf("%d bytes of a session make %d of the group; Bind is %q", 1<<30, large.MaxGroupBytes, large.Bind)
	}
}

func TestDirAndRunDirTogether(t *testing.T) {
	err := Config{Dir: "a", RunDir: "b"}.withDefaults().validate()
	if err == nil || !strings.Contains(err.Error(), "Config.RunDir: is set together with Dir") {
		t.Errorf("both: %v", err)
	}
}

// TestEachSettingAtItsBounds tries each number, text and list of a Config at its bounds and one
// beyond.
func TestEachSettingAtItsBounds(t *testing.T) {
	names := func(n int64) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("f", i))
		}
		return all
	}
	text := func(n int64) string { return strings.Repeat("x", int(n)) }
	joined := func(c *Config) { c.Join, c.Insecure = []string{"a:1"}, true }
	founded := func(c *Config) { joined(c); c.Replicas = 1 }
	for field, row := range map[string]struct {
		set     func(c *Config, n int64)
		in, out []int64
	}{
		"Name":     {func(c *Config, n int64) { c.Name = text(n) }, []int64{1, 128}, []int64{129}},
		"Cluster":  {func(c *Config, n int64) { c.Cluster = text(n) }, []int64{1, 128}, []int64{129}},
		"Zone":     {func(c *Config, n int64) { c.Zone = text(n) }, []int64{0, 64}, []int64{65}},
		"Dir":      {func(c *Config, n int64) { c.Dir = text(n) }, []int64{0, 4096}, []int64{4097}},
		"RunDir":   {func(c *Config, n int64) { c.RunDir = text(n) }, []int64{0, 4096}, []int64{4097}},
		"Replicas": {func(c *Config, n int64) { joined(c); c.Replicas = int(n) }, []int64{1, 16}, []int64{-1, 17}},
		"Founders": {func(c *Config, n int64) { joined(c); c.Founders = names(n) }, []int64{1, 64}, []int64{65}},
		"Founders[0]": {func(c *Config, n int64) { joined(c); c.Founders = []string{text(n)} },
			[]int64{1, 128}, []int64{0, 129}},
		"Voters": {func(c *Config, n int64) { c.Voters = int(n) }, []int64{0, 1, 3, 5, 7}, []int64{-1, 2, 4, 6, 8, 9}},
		"StickyUnused": {func(c *Config, n int64) { c.StickyUnused = time.Duration(n) }, []int64{1e6, 36e11},
			[]int64{1e6 - 1, 36e11 + 1}},
		"SessionTTL": {func(c *Config, n int64) { c.SessionTTL = time.Duration(n) }, []int64{1e9, 6e11},
			[]int64{1e9 - 1, 6e11 + 1}},
		"Grace": {func(c *Config, n int64) { c.Grace = time.Duration(n) }, []int64{-1, 0, 1e10, 36e11},
			[]int64{1, 1e10 - 1, 36e11 + 1}},
		"MaxSessionBytes": {func(c *Config, n int64) { c.MaxSessionBytes, c.MaxGroupBytes = n, maxBudget },
			[]int64{minBudget, maxBudget}, []int64{minBudget - 1, maxBudget + 1}},
		"MaxSessionBytes ": {func(c *Config, n int64) { c.MaxSessionBytes, c.MaxGroupBytes = n, 2*minBudget },
			[]int64{2 * minBudget}, []int64{2*minBudget + 1}},
		"MaxGroupBytes": {func(c *Config, n int64) { c.MaxSessionBytes, c.MaxGroupBytes = min(n, maxBudget), n },
			[]int64{minBudget, maxBudget}, []int64{minBudget - 1, maxBudget + 1}},
		`MaxWaiting["p"]`: {func(c *Config, n int64) { c.MaxWaiting = map[string]int{"p": int(n)} }, []int64{1, 65_536},
			[]int64{-1, 0, 65_537}},
		"OldSecrets": {func(c *Config, n int64) {
			c.Secret, c.OldSecrets = secretA, slices.Repeat([]string{secretB}, int(n))
		},
			[]int64{0, 8}, []int64{9}},
		"Bind": {func(c *Config, n int64) { founded(c); c.Bind = fmt.Sprint("127.0.0.1:", n) }, []int64{0, 65_535},
			[]int64{-1, 65_536}},
		"Bind ": {func(c *Config, n int64) { founded(c); c.Bind = text(n) + ":1" }, []int64{0, 253}, []int64{254}},
		"Advertise": {func(c *Config, n int64) { founded(c); c.Advertise = fmt.Sprint("a:", n) }, []int64{1, 65_535},
			[]int64{0, 65_536}},
		"Advertise ": {func(c *Config, n int64) { founded(c); c.Advertise = text(n) + ":1" }, []int64{1, 253},
			[]int64{0, 254}},
	} {
		for _, n := range slices.Concat(row.in, row.out) {
			c := Config{Name: "n"}
			row.set(&c, n)
			err := c.withDefaults().validate()
			if ok := slices.Contains(row.in, n); (err == nil) != ok ||
				!ok && !strings.Contains(err.Error(), "Config."+strings.TrimSpace(field)+": ") {
				t.Errorf("%s at %d: %v", field, n, err)
			}
		}
	}
}

// TestMistakesHaveAnOrder compares the fields of all mistakes of a Config, in the order in which
// they are told: each field alone, then those that belong together.
func TestMistakesHaveAnOrder(t *testing.T) {
	long := strings.Repeat("x", 5000)
	c := Config{Name: long, Cluster: long, Zone: long, Dir: long, Bind: "0.0.0.0:1", Advertise: "x", Join: []string{"x"},
		Replicas: 17, Founders: []string{"", "a", "a"}, Voters: 2, SessionTTL: time.Hour, MaxSessionBytes: 2,
		MaxGroupBytes: 1,
		MaxWaiting:    map[string]int{"b": 0, "a": 0}, StickyUnused: 1, Grace: 2, OldSecrets: make([]string, 9),
		TLSPeers: []string{"x"}}
	want := strings.Fields("Name Cluster Zone Dir Advertise Join[0] Replicas Founders[0] Founders Voters SessionTTL " +
		"MaxSessionBytes MaxGroupBytes MaxSessionBytes MaxWaiting[\"a\"] MaxWaiting[\"b\"] StickyUnused Bind OldSecrets " +
		"OldSecrets TLSPeers Replicas Grace")
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^Config\.([^:]+): `).FindAllStringSubmatch(fmt.Sprint(c.validate()), -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// issued returns a certificate with these names that has signed itself, and its files.
func issued(t *testing.T, names ...string) (*tls.Config, TLSFiles) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour), DNSNames: names, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	private, err2 := x509.MarshalPKCS8PrivateKey(key)
	leaf, err3 := x509.ParseCertificate(der)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	dir := t.TempDir()
	files := TLSFiles{filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")}
	for path, block := range map[string]*pem.Block{files.Cert: {Type: "CERTIFICATE", Bytes: der},
		files.Key: {Type: "PRIVATE KEY", Bytes: private}, files.CA: {Type: "CERTIFICATE", Bytes: der}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: pool,
		ClientCAs: pool}, files
}

// TestWhichCertificatesMayStart checks a certificate, given and in files, with each list of names:
// its name must be that of a peer, and not of a guest.
func TestWhichCertificatesMayStart(t *testing.T) {
	given, files := issued(t, "a.internal")
	for what, c := range map[string]struct {
		peers  []string
		guests map[string]string
		want   string
	}{
		"a peer":       {[]string{"b.internal", "a.internal"}, map[string]string{"g": "lock *"}, ""},
		"another peer": {[]string{"b.internal"}, nil, "Config.TLSPeers: lacks the name of this instance's own"},
		"a guest": {[]string{"b.internal"}, map[string]string{"a.internal": "lock *"},
			"Config.TLSPeers: a guest's"},
		"a guest of no right": {[]string{"a.internal"}, map[string]string{"g": "dance"}, "Config.TLSGuests"},
		"no peer":             {nil, nil, "Config.TLSPeers: is empty"},
	} {
		for _, config := range []Config{{TLS: given}, {TLSFiles: files}} {
			config.Name, config.TLSPeers, config.TLSGuests, config.warnings = "n", c.peers, c.guests, []string{"a.internal"}
			err := config.withDefaults().validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, in files %v: %v, want %q", what, config.TLS == nil, err, c.want)
			}
			source, err := config.credentials(nil, nil)
			if c.want == "" && (err != nil || identityOf(source).Tier != credentials.Root) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	swapped := Config{TLSFiles: TLSFiles{files.Cert, files.CA, files.CA}, TLSPeers: []string{"a.internal"}}
	if _, err := swapped.credentials(nil, nil); err == nil {
		t.Error("a certificate is a key")
	}
	if is := identityOf(nil); is != (credentials.Peer{Tier: credentials.Root}) {
		t.Errorf("without TLS an instance is %+v", is)
	}
}

// TestPathsAreResolved checks that each path of a Config becomes absolute, and no other one.
func TestPathsAreResolved(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(here, name) }
	c := fullConfig()
	want := TLSFiles{in("cert"), in("key"), in("ca")}
	if err := c.resolvePaths(); err != nil || c.Dir != in("dir") || c.TLSFiles != want {
		t.Errorf("%q, %+v, %v", c.Dir, c.TLSFiles, err)
	}
	c = Config{}
	if err := c.resolvePaths(); err != nil || !reflect.DeepEqual(c, Config{}) {
		t.Errorf("%+v, %v", c, err)
	}
}
