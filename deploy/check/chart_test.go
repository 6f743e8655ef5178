package check

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

const chartDir = "../helm/mortise-service"

// rendered is what the chart makes of some values, by the kinds of the documents.
type rendered map[string]string

// render renders the chart as helm install does, for a release with the name orders. values is
// YAML.
func render(t *testing.T, values string) (rendered, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "orders", Namespace: "shop"}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, err
	}
	found := rendered{}
	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			found["notes"] = text
			continue
		}
		found.add(t, text)
	}
	return found, nil
}

func (r rendered) add(t *testing.T, text string) {
	t.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		document = strings.TrimPrefix(strings.TrimSpace(document), "---\n")
		if document == "" {
			continue
		}
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if kind.Kind == "" || r[kind.Kind] != "" {
			t.Errorf("a second document of the kind %q\n%s", kind.Kind, document)
		}
		r[kind.Kind] = document
	}
}

func (r rendered) kinds() (kinds []string) {
	for kind := range r {
		if kind != "notes" {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// workload joins the documents that the checks of the plain manifests read.
func (r rendered) workload() string {
	return strings.Join([]string{r["Service"], r["PodDisruptionBudget"], r["NetworkPolicy"],
		cmp.Or(r["StatefulSet"], r["Deployment"])}, "\n---\n")
}

const image = "image: registry.example/orders:1\n"

// The chart follows the rules of the plain manifests with all values.
func TestTheChartIsRight(t *testing.T) {
	p := program(t)
	const founders = "NetworkPolicy PodDisruptionBudget Service StatefulSet"
	const memory = "Deployment NetworkPolicy PodDisruptionBudget Service"
	for _, c := range []struct {
		name, values, kinds string
		check               func(string, Program) []error
		contains            []string
	}{
		{"the defaults", image, founders, StatefulSet, nil},
		{"five founders of seven pods", image + "founders: 5\nreplicas: 7", founders, StatefulSet,
			[]string{"orders-0,orders-1,orders-2,orders-3,orders-4\"", "replicas: 7", "VOTERS, value: \"5\""}},
		{"in memory", image + "founders: 0\nreplicas: 5", memory, Deployment,
			[]string{"REPLICAS, value: \"5\"", "RUN_DIR, value: /run/lock/dir"}},
		{"monitored", image + "serviceMonitor: {enabled: true, labels: {team: a}}\nprometheusRule: {enabled: true}",
			"NetworkPolicy PodDisruptionBudget PrometheusRule Service ServiceMonitor StatefulSet", StatefulSet, nil},
		{"in memory, monitored", image + "founders: 0\nserviceMonitor: {enabled: true}",
			"Deployment NetworkPolicy PodDisruptionBudget Service ServiceMonitor", Deployment, nil},
		{"many values", image + `
imagePullSecrets: [{name: registry}]
secret: {name: other, key: root}
env: [{name: ORDERS_HTTP, value: ":8080"}, {name: ORDERS_LOCK_SESSION_TTL, value: 5s}]
ports: {console: 8081}
resources: {requests: {cpu: "2"}, limits: {memory: 1Gi}}
storage: {size: 5Gi, class: fast}
terminationGracePeriodSeconds: 60
networkPolicy: {guests: [{podSelector: {matchLabels: {app: cron}}}]}
zones: DoNotSchedule
`, founders, StatefulSet, []string{"secretName: other", "/secret/root", "storage: 5Gi", "storageClassName: fast",
			"containerPort: 8081", "app: cron", "name: ORDERS_LOCK_SESSION_TTL",
			"whenUnsatisfiable: DoNotSchedule", `"limits":{"memory":"1Gi"}`, `"registry"`}},
	} {
		r, err := render(t, c.values)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if kinds := strings.Join(r.kinds(), " "); kinds != c.kinds {
			t.Errorf("%s: the kinds are %s, want %s", c.name, kinds, c.kinds)
		}
		for _, err := range c.check(r.workload(), p) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, text := range c.contains {
			if !strings.Contains(r.workload(), text) {
				t.Errorf("%s: %q is not in\n%s", c.name, text, r.workload())
			}
		}
		if !strings.Contains(r["notes"], "The group is founded when") {
			t.Errorf("%s: the notes are %q", c.name, r["notes"])
		}
	}
}

// The chart and the examples have the version of the library.
func TestTheVersionIsThatOfTheLibrary(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nconst version = \"v")
	version, _, _ := strings.Cut(after, "\"")
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	if version == "" || chart.Metadata.Version != version {
		t.Errorf("the chart has the version %s, the library %q", chart.Metadata.Version, version)
	}
	if base := read(t, "kustomization.yaml"); strings.Count(base, "?ref=v"+version+"]") != strings.Count(base, "?ref=") {
		t.Errorf("kustomization.yaml does not name the version %s everywhere", version)
	}
}

// Values that would make a wrong group are refused before anything is installed.
func TestTheChartRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"":                                      "image",
		image + "founder: 3":                    "founder",
		image + "founders: 4":                   "founders",
		image + "founders: 5":                   "replicas is less than founders",
		image + "replicas: 2":                   "replicas",
		image + "founders: 0\nreplicas: 1":      "replicas",
		image + "secret: {name: \"\"}":          "secret",
		image + "secret: {nam: x}":              "nam",
		image + "variables: orders":             "variables",
		image + "resources: {limits: {cpu: 1}}": "cpu",
		image + "zones: never":                  "zones",
		image + "ports: {lock: 0}":              "lock",
		image + "networkPolicy: {guest: []}":    "guest",
	} {
		if r, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want an error with %q", values, r.kinds(), err, want)
		}
	}
}

// The alerts of the chart are the generated ones.
func TestTheChartHasTheAlerts(t *testing.T) {
	generated, err := os.ReadFile(filepath.Join(root, "adapters", "mortiseotel", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	copied, err := os.ReadFile(filepath.Join(chartDir, "alerts.rules"))
	if err != nil || string(copied) != string(generated) {
		t.Errorf("the chart has other alerts: go test -run TestTheOverlayHasTheAlerts -write (%v)", err)
	}
	r, err := render(t, image+"prometheusRule: {enabled: true, labels: {release: prometheus}}")
	if err != nil {
		t.Fatal(err)
	}
	f := faults(PrometheusRule(r["PrometheusRule"], string(generated)))
	f.must(strings.Contains(r["PrometheusRule"], "release"), "the label is missing")
	for _, err := range f {
		t.Error(err)
	}
}

// The ServiceMonitor leads to a port of the pods, through the Service.
func TestTheChartIsScraped(t *testing.T) {
	r, err := render(t, image+"serviceMonitor: {enabled: true, path: /m, interval: 5s, labels: {team: a}}")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range ServiceMonitor(r["ServiceMonitor"], r.workload()) {
		t.Error(err)
	}
	for _, text := range []string{"path: /m", "interval: 5s", `"team":"a"`} {
		if !strings.Contains(r["ServiceMonitor"], text) {
			t.Errorf("%q is not in\n%s", text, r["ServiceMonitor"])
		}
	}
}
