{{- define "labels" }}{app: {{ .Release.Name }}}{{ end }}

{{/* The lists that the founders' variables contain: names, and addresses. */}}
{{- define "founders" }}
{{- range $i := until (int .Values.founders) }}{{ if $i }},{{ end }}{{ $.Release.Name }}-{{ $i }}{{ end }}
{{- end }}
{{- define "addresses" }}
{{- range $i := until (int .Values.founders) }}
  {{- if $i }},{{ end }}{{ $.Release.Name }}-{{ $i }}.{{ $.Release.Name }}:{{ $.Values.ports.lock }}
{{- end }}
{{- end }}

{{/* What both workloads have in their pods. */}}
{{- define "pod" }}
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
enableServiceLinks: false # a Service could add variables with the program's prefix
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
automountServiceAccountToken: false # the library asks no API server
securityContext: # the secret and the volumes are open to this user
  seccompProfile: {type: RuntimeDefault}
  runAsNonRoot: true
  runAsUser: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
{{- end }}

{{- define "zones" }}
- topologyKey: topology.kubernetes.io/zone
  maxSkew: 1
  whenUnsatisfiable: {{ .Values.zones }}
  labelSelector: {matchLabels: {{ include "labels" . }}}
{{- end }}

{{- define "container" }}
name: {{ .Release.Name }}
image: {{ .Values.image | quote }}
securityContext: # with that of the pod: Pod Security "restricted"
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
ports:
  - {name: lock, containerPort: {{ .Values.ports.lock }}}
  - {name: http, containerPort: {{ .Values.ports.http }}}
  {{- with .Values.ports.console }}
  - {name: console, containerPort: {{ . }}}
  {{- end }}
env:
  - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  # DNS would be late.
  - {name: {{ .Values.variables }}_ADVERTISE, value: "$(POD_IP):{{ .Values.ports.lock }}"}
  {{- if .Values.founders }}
  - {name: {{ .Values.variables }}_JOIN, value: {{ include "addresses" . | quote }}}
  - {name: {{ .Values.variables }}_FOUNDERS, value: {{ include "founders" . | quote }}}
  - {name: {{ .Values.variables }}_VOTERS, value: {{ .Values.founders | quote }}}
  - {name: {{ .Values.variables }}_DIR, value: /state/lock}
  {{- else }}
  - {name: {{ .Values.variables }}_JOIN, value: "{{ .Release.Name }}:{{ .Values.ports.lock }}"}
  - {name: {{ .Values.variables }}_REPLICAS, value: {{ .Values.replicas | quote }}}
  - {name: {{ .Values.variables }}_RUN_DIR, value: /run/lock/dir} # see the volume
  {{- end }}
  - {name: {{ .Values.variables }}_SECRET_FILE, value: /secret/{{ .Values.secret.key }}}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
startupProbe: # reading a directory takes time
  {httpGet: {path: {{ .Values.paths.live }}, port: {{ .Values.ports.http }}}, periodSeconds: 1, failureThreshold: 60}
readinessProbe: # it answers within 1 s
  {httpGet: {path: {{ .Values.paths.ready }}, port: {{ .Values.ports.http }}}, periodSeconds: 2, timeoutSeconds: 2}
livenessProbe: # never the path of readiness: a network partition would restart all pods
  {httpGet: {path: {{ .Values.paths.live }}, port: {{ .Values.ports.http }}}}
resources: {{ toJson .Values.resources }}
volumeMounts:
  {{- if .Values.founders }}
  - {name: state, mountPath: /state}
  {{- else }}
  - {name: run, mountPath: /run/lock}
  {{- end }}
  - {name: secret, mountPath: /secret, readOnly: true}
{{- end }}

{{- define "volumes" }}
- {name: secret, secret: {secretName: {{ .Values.secret.name }}, defaultMode: 0440}} # readable for fsGroup only
{{- if not .Values.founders }}
- {name: run, emptyDir: {medium: Memory}} # outlives a killed container, and frees its locks
{{- end }}
{{- end }}
