{{/* Names are the release's, so that several releases stand beside each other. */}}
{{- define "countersign.name" -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- end }}

{{- define "countersign.labels" -}}
app.kubernetes.io/name: countersign
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "countersign.allLabels" -}}
{{ include "countersign.labels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* What must be given together, said before anything is installed. */}}
{{- define "countersign.check" -}}
{{- if .Values.database.urlSecret }}
{{- if not .Values.masterKey.secret }}{{ fail "database.urlSecret needs masterKey.secret: every pod must have the same key" }}{{ end }}
{{- if not .Values.blobs.url }}{{ fail "database.urlSecret needs blobs.url: pods do not see each other's files" }}{{ end }}
{{- if not (or .Values.counters.url .Values.counters.urlSecret) }}{{ fail "database.urlSecret needs counters.url or counters.urlSecret: pods would count rate limits apart" }}{{ end }}
{{- else if or .Values.counters.url .Values.counters.urlSecret }}{{ fail "counters belong to database.urlSecret: one pod counts by itself" }}
{{- end }}
{{- end }}

{{/* Metadata and spec of a pod. Takes root, part, args, ports, resources, data (a volume's source; nothing: claimed). */}}
{{- define "countersign.pod" -}}
{{- $values := .root.Values -}}
metadata:
  labels:
    {{- include "countersign.allLabels" . | nindent 4 }}
  {{- with $values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  # COUNTERSIGN_GRACE_S, and as much again to close what is open.
  terminationGracePeriodSeconds: 20
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ .part }}
      image: "{{ $values.image.repository }}:{{ $values.image.tag | default .root.Chart.AppVersion }}"
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        {{- toYaml .args | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      env:
        - {name: COUNTERSIGN_DISTRIBUTION_URL, value: {{ $values.store.url | quote }}}
        - {name: COUNTERSIGN_RECORDS_URL, value: {{ $values.records.url | quote }}}
        {{- if .ports }}
        - {name: COUNTERSIGN_OPERATOR_HOST, value: "0.0.0.0"}
        - {name: COUNTERSIGN_OPERATOR_PORT, value: "9480"}
        {{- end }}
        {{- if and $values.database.urlSecret (eq .part "store") }}
        - {name: COUNTERSIGN_JOB_WORKERS, value: "0"}
        {{- end }}
        {{- with $values.trustedProxies }}
        - {name: COUNTERSIGN_TRUSTED_PROXIES, value: {{ . | quote }}}
        {{- end }}
        {{- with $values.blobs.url }}
        - {name: COUNTERSIGN_BLOBS_URL, value: {{ . | quote }}}
        {{- end }}
        {{- with $values.counters.url }}
        - {name: COUNTERSIGN_COUNTERS_URL, value: {{ . | quote }}}
        {{- end }}
        {{- with $values.counters.urlSecret }}
        - name: COUNTERSIGN_COUNTERS_URL
          valueFrom: {secretKeyRef: {name: {{ . }}, key: url}}
        {{- end }}
        {{- with $values.database.urlSecret }}
        - name: COUNTERSIGN_DATABASE_URL
          valueFrom: {secretKeyRef: {name: {{ . }}, key: url}}
        {{- end }}
        {{- with $values.masterKey.secret }}
        - name: COUNTERSIGN_MASTER_KEY
          valueFrom: {secretKeyRef: {name: {{ . }}, key: key}}
        {{- end }}
        {{- range $name, $value := $values.settings }}
        - {name: {{ $name }}, value: {{ $value | toString | quote }}}
        {{- end }}
      {{- if or $values.settingsFrom $values.blobs.credentialsSecret }}
      envFrom:
        {{- with $values.blobs.credentialsSecret }}
        - secretRef: {name: {{ . }}}
        {{- end }}
        {{- range $values.settingsFrom }}
        - secretRef: {name: {{ . }}}
        {{- end }}
      {{- end }}
      {{- if .ports }}
      ports:
        {{- range $name, $port := .ports }}
        - {name: {{ $name }}, containerPort: {{ $port }}}
        {{- end }}
        - {name: operator, containerPort: 9480}
      # The first pod brings the database up to date before it is ready, however long that takes.
      startupProbe:
        httpGet: {path: /livez, port: operator}
        periodSeconds: 2
        failureThreshold: 900
      livenessProbe:
        httpGet: {path: /livez, port: operator}
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet: {path: /readyz, port: operator}
        periodSeconds: 5
        timeoutSeconds: 5
      {{- end }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- with .data }}
    - name: data
      {{- toYaml . | nindent 6 }}
    {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
