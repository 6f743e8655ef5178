package check

import (
	"strings"
	"testing"
	"time"
)

type broken struct{ file, old, new, fault string }

const (
	set   = "kubernetes-statefulset.yaml"
	fleet = "kubernetes-deployment.yaml"
	yml   = "compose.yaml"
	unit  = "orders.service"
)

// breaks contains at least one violation of every rule.
var breaks = []broken{
	{set, "replicas: 3", "replica: 3", "unknown field"},
	{set, "podManagementPolicy", "podmanagementpolicy", "unknown field"},
	{set, "  minReadySeconds: 10", "  serviceName: orders\n  minReadySeconds: 10", "already"},
	{set, "kind: PodDisruptionBudget", "kind: Ingress", "does not know"},
	{set, "policy/v1", "policy/v1beta1", "does not know"},
	{set, "clusterIP: None", "sessionAffinity: None", "headless"},
	{set, "publishNotReadyAddresses: true", "publishNotReadyAddresses: false", "could not find"},
	{set, "port: 7947}]", "port: 7946}]", "port is not"},
	{set, "  selector: {app: orders}", "  selector: {app: order}", "the Service selects"},
	{set, "selector: &ours {matchLabels: {app: orders}}", "selector: &ours {matchLabels: {app: order}}",
		"its own pods"},
	{set, "maxUnavailable: 1, selector: {matchLabels: {app: orders}}",
		"maxUnavailable: 1, selector: {matchLabels: {app: order}}", "does not select the pods"},
	{set, "maxUnavailable: 1", "maxUnavailable: 2", "majority"},
	{set, "maxUnavailable: 1", "minAvailable: 1", "majority"},
	{set, "serviceName: orders", "serviceName: order", "no names"},
	{set, "Parallel", "OrderedReady", "waits for it"},
	{set, "minReadySeconds: 10", "minReadySeconds: 0", "before the last one has caught up"},
	{set, "  minReadySeconds: 10", "  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}\n  minReadySeconds: 10",
		"settings of its own"},
	{set, "  minReadySeconds: 10",
		"  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}\n  minReadySeconds: 10", "retention"},
	{set, "GracePeriodSeconds: 45", "GracePeriodSeconds: 35", "not longer"},
	{set, "automountServiceAccountToken: false", "hostPID: true", "token of a service account"},
	{set, "automountServiceAccountToken: false", "hostPID: true", "namespaces of the machine"},
	{set, "runAsNonRoot: true", "runAsNonRoot: false", "run as root"},
	{set, "runAsUser: 65532", "runAsUser: 0", "run as root"},
	{set, "RuntimeDefault", "Unconfined", "seccompProfile"},
	{set, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "write its root"},
	{set, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "more privileges"},
	{set, "{drop: [ALL]}", "{drop: [ALL], add: [NET_ADMIN]}", "keeps capabilities"},
	{set, "{drop: [ALL]}", "{drop: [NET_RAW]}", "keeps capabilities"},
	{set, "            allowPriv", "            privileged: true\n            allowPriv", "against those of the pod"},
	{set, "secret: {secretName: orders-lock, defaultMode: 0440}", "hostPath: {path: /etc}", "path of the machine"},
	{set, "podSelector: {matchLabels: {app: orders}}\n", "podSelector: {matchLabels: {app: order}}\n",
		"NetworkPolicy does not select"},
	{set, "from: [{podSelector: {matchLabels: {app: orders}}}], ", "", "every pod reaches"},
	{set, "[{podSelector: {matchLabels: {app: orders}}}], ports", "[{podSelector: {matchLabels: {app: order}}}], ports",
		"from each other"},
	{set, "{port: 7948, endPort", "{port: 8081, endPort", "closes ports"},
	{set, "  ingress: #", "  policyTypes: [Egress]\n  ingress: #", "limits what the pods reach"},
	{set, "      terminationGracePeriodSeconds: 45", "      hostNetwork: false", "not longer"},
	{set, "enableServiceLinks: false", "enableServiceLinks: true", "enableServiceLinks"},
	{set, "topologyKey: kubernetes.io/hostname", "topologyKey: kubernetes.io/arch", "anti-affinity"},
	{set, "requiredDuringSchedulingIgnoredDuringExecution:\n" +
		"            - {topologyKey: kubernetes.io/hostname, labelSelector: *ours}",
		"preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: " +
			"kubernetes.io/hostname, labelSelector: *ours}}]", "anti-affinity"},
	{set, "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "zones"},
	{set, "status.podIP", "status.hostIP", "not the pod's address"},
	{set, "$(POD_IP):7947\"}", "$(POD_IP):7946\"}", "advertised"},
	{set, "name: POD_IP", "name: ORDERS_LOCK_ZONE", "not defined before"},
	{set, "name: ORDERS_LOCK_ADVERTISE", "name: ORDERS_LOCK_ADVERTISED", "does not read"},
	{set, "orders-1.orders:7947", "orders-1:7947", "addresses to join"},
	{set, "orders-0,orders-1,orders-2", "orders-1,orders-2,orders-3", "founder 0"},
	{set, "orders-0,orders-1,orders-2", "orders-0,orders-1", "odd number"},
	{set, "replicas: 3", "replicas: 2", "odd number"},
	{set, "ORDERS_LOCK_FOUNDERS, value", "ORDERS_LOCK_REPLICAS, value", "Founders and Replicas"},
	{set, "ORDERS_LOCK_DIR, value: /state/lock", "ORDERS_LOCK_DIR, value: /tmp/lock", "would be a new instance"},
	{set, "- {name: state, mountPath", "- {name: other, mountPath", "would be a new instance"},
	{set, "[ReadWriteOnce]", "[ReadWriteMany]", "would be a new instance"},
	{set, "name: ORDERS_LOCK_SECRET_FILE, value: /secret/secret",
		"name: ORDERS_LOCK_SECRET, value: hunter2hunter2hunter2", "in a variable"},
	{set, "secretName: orders-lock", "optional: true, secretName: orders-lock", "must exist"},
	{set, "secret: {secretName: orders-lock, defaultMode: 0440}", "emptyDir: {}", "volume of a Secret"},
	{set, "0440", "0444", "closed to others"},
	{set, ", defaultMode: 0440", "", "closed to others"},
	{set, "mountPath: /secret, readOnly: true", "mountPath: /secrets, readOnly: true", "volume of a Secret"},
	{set, ", readOnly: true", "", "read-only"},
	{set, "        fsGroup: 65532\n", "", "may not read"},
	{set, "name: ORDERS_LOCK_SECRET_FILE", "name: ORDERS_LOCK_ZONE", "no secret"},
	{set, "directory takes time\n            {httpGet: {path: /healthz", "directory\n            {httpGet: {path: /readyz",
		"startup probe asks"},
	{set, "failureThreshold: 60", "failureThreshold: 3", "gives up"},
	{set, "path: /readyz", "path: /ready", "readiness probe asks"},
	{set, "path: /readyz, port: 8080", "path: /readyz, port: 7947", "listens on"},
	{set, "timeoutSeconds: 2", "timeoutSeconds: 1", "does not wait"},
	{set, "livenessProbe: {httpGet: {path: /healthz", "livenessProbe: {httpGet: {path: /readyz", "liveness probe asks"},
	{set, "livenessProbe: {httpGet: {path: /healthz, port: 8080}}", "livenessProbe: {tcpSocket: {port: 8080}}",
		"no liveness probe"},
	{set, "volumeMounts:", "resources: {limits: {cpu: 1}}\n          volumeMounts:", "throttled"},

	{fleet, "maxSurge: 0", "maxSurge: 1", "maxSurge"},
	{fleet, "maxUnavailable: 1}\n", "maxUnavailable: 2}\n", "maxUnavailable"},
	{fleet, "    rollingUpdate: {maxSurge: 0, maxUnavailable: 1}", "    type: RollingUpdate", "maxSurge"},
	{fleet, "replicas: 3", "replicas: 4", "number of replicas"},
	{fleet, "  replicas: 3", "  paused: false", "number of replicas"},
	{fleet, "value: \"3\"", "value: \"2\"", "number of replicas"},
	{fleet, "value: \"3\"", "value: 3", "cannot unmarshal"},
	{fleet, "value: \"orders:7947\"", "value: \"orders-0.orders:7947\"", "address to join"},
	{fleet, "name: ORDERS_LOCK_REPLICAS", "name: ORDERS_LOCK_FOUNDERS", "neither Founders nor Dir"},
	{fleet, "ORDERS_LOCK_RUN_DIR, value: /run/orders/lock", "ORDERS_LOCK_RUN_DIR, value: /tmp/lock", "run directory"},
	{fleet, "emptyDir: {medium: Memory}", "emptyDir: {}", "run directory"},
	{fleet, "name: run, mountPath", "name: ran, mountPath", "run directory"},
	{fleet, "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready", "cut off"},
	{fleet, "effect: NoExecute}", "effect: NoExecute, tolerationSeconds: 300}", "cut off"},
	{fleet, "kubernetes.io/hostname", "kubernetes.io/arch", "machines and zones"},
	{fleet, "publishNotReadyAddresses: true", "publishNotReadyAddresses: false", "could not find"},
	{fleet, "kind: Deployment", "kind: StatefulSet", "unknown field"},

	{yml, "restart:", "restarts:", "unknown field"},
	{yml, "hostname: orders-1", "hostname: orders-2", "not one of the founders"},
	{yml, "orders-2: {<<", "orders-3: {<<", "the founders are not"},
	{yml, "orders-2:7947 ", "orders-2:7946 ", "addresses to join"},
	{yml, "45s", "35s", "not longer"},
	{yml, "45s", "soon", "not longer"},
	{yml, "state-1:/state", "state-0:/state", "another service"},
	{yml, "state-1:/state", "state-9:/state", "not declared"},
	{yml, "state-1:/state", "state-1:/data", "not on the volume"},
	{yml, ", volumes: [\"state-1:/state\"]", "", "want one volume"},
	{yml, "ORDERS_LOCK_DIR", "ORDERS_LOCK_DIRECTORY", "does not read"},
	{yml, "/run/secrets/lock", "/secret", "gets as a secret"},
	{yml, "secrets: [lock]", "secrets: [key]", "gets as a secret"},
	{yml, "lock: {file: ./secret}", "lock: {}", "gets as a secret"},
	{yml, "ORDERS_LOCK_SECRET_FILE: /run", "ORDERS_LOCK_SECRET: /run", "in a variable"},
	{yml, "read_only: true", "read_only: false", "can write its root"},
	{yml, "cap_drop: [ALL]", "cap_drop: [NET_RAW]", "has or can get privileges"},
	{yml, "no-new-privileges:true", "no-new-privileges:false", "has or can get privileges"},
	{yml, "[\"8080\"]", "[\"8080\", \"7947\"]", "only that of the probes"},
	{yml, "unless-stopped", "no", "restarted"},
	{yml, "./examples/service", "./examples/quickstart", "not the example"},

	{unit, "TimeoutStopSec=45", "TimeoutStopSec=35", "not longer"},
	{unit, "TimeoutStopSec=45", "", "not longer"},
	{unit, "KillSignal=SIGTERM", "KillSignal=SIGKILL", "SIGTERM"},
	{unit, "Restart=always", "Restart=on-success", "restarted"},
	{unit, "StartLimitIntervalSec=0", "", "restarted"},
	{unit, "[Service]", "[Services]", "may not have the line"},
	{unit, "DynamicUser=yes", "DynamicUsers=yes", "may not have the line"},
	{unit, "Type=exec", "Type=exec\nType=exec", "twice"},
	{unit, "EnvironmentFile=/etc/orders/lock.env", "", "from a file"},
	{unit, "LoadCredential=lock-secret:/etc/orders/lock.secret", "", "only the service can read"},
	{unit, "%d/lock-secret", "/etc/orders/lock.secret", "only the service can read"},
	{unit, " ORDERS_LOCK_SECRET_FILE=%d/lock-secret", " ORDERS_LOCK_SECRET=hunter2hunter2hunter2", "in a variable"},
	{unit, "#   ORDERS_LOCK_FOUNDERS=a,b,c", "#   ORDERS_LOCK_SECRET=hunter2hunter2hunter2", "in a variable"},
	{unit, "ORDERS_LOCK_SECRET_FILE=%d", "ORDERS_LOCK_SECRET_FIEL=%d", "does not read"},
	{unit, "%S/orders/lock", "/var/orders/lock", "not be writable"},
	{unit, "StateDirectory=orders", "StateDirectory=other", "not be writable"},
	{unit, "#   ORDERS_LOCK_FOUNDERS", "#   ORDERS_LOCK_VOTES", "does not read"},
	{unit, "After=network-online.target", "After=network.target", "route"},
	{unit, "ExecStart=/usr", "ExecStart=usr", "names no program"},
	{unit, "WantedBy=multi-user.target", "", "nothing starts it"},
}

func TestEveryRuleIsNoticed(t *testing.T) {
	p := program(t)
	for _, b := range breaks {
		file := read(t, b.file)
		if !strings.Contains(file, b.old) {
			t.Errorf("%s has no %q to break: this case tests nothing", b.file, b.old)
			continue
		}
		var found []string
		for _, err := range checks[b.file](strings.Replace(file, b.old, b.new, 1), p) {
			found = append(found, err.Error())
		}
		if !strings.Contains(strings.Join(found, "\n"), b.fault) {
			t.Errorf("%s with %q for %q: found %q, want a fault that says %q", b.file, b.new, b.old, found, b.fault)
		}
	}
}

// The unchanged files must have faults if the program differs.
func TestProgramCounts(t *testing.T) {
	for name, change := range map[string]func(*Program){
		"a longer end":   func(p *Program) { p.End = time.Minute },
		"another path":   func(p *Program) { delete(p.Paths, "/readyz") },
		"another port":   func(p *Program) { p.HTTPPort++ },
		"a late answer":  func(p *Program) { p.Ready = 3 * time.Second },
		"another name":   func(p *Program) { delete(p.Variables, prefix+"JOIN") },
		"another locker": func(p *Program) { p.LockPort++ },
	} {
		p := program(t)
		change(&p)
		if len(StatefulSet(read(t, set), p)) == 0 {
			t.Errorf("%s is not noticed", name)
		}
	}
}

func TestProgramIsRead(t *testing.T) {
	p := program(t)
	if p.Ready != time.Second || p.End != 35*time.Second || p.LockPort != 7947 || p.HTTPPort != 8080 ||
		!p.Paths["/healthz"] || !p.Variables["ORDERS_HTTP"] {
		t.Errorf("%+v", p)
	}
	if _, err := ReadProgram("."); err == nil {
		t.Error("a program that is not there is read")
	}
}
