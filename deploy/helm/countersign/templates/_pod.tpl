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

{{/* The claim that backups lie in. */}}
{{- define "countersign.backups" -}}
{{- .Values.backup.claim | default (printf "%s-backups" (include "countersign.name" .)) -}}
{{- end }}

{{/* What must be given together, said before anything is installed. */}}
{{- define "countersign.check" -}}
{{- if .Values.database.urlSecret }}
{{- if not .Values.masterKey.secret }}{{ fail "database.urlSecret needs masterKey.secret: every pod must have the same key" }}{{ end }}
{{- if not .Values.blobs.url }}{{ fail "database.urlSecret needs blobs.url: pods do not see each other's files" }}{{ end }}
{{- if not (or .Values.counters.url .Values.counters.urlSecret) }}{{ fail "database.urlSecret needs counters.url or counters.urlSecret: pods would count rate limits apart" }}{{ end }}
{{- else if or .Values.counters.url .Values.counters.urlSecret }}{{ fail "counters belong to database.urlSecret: one pod counts by itself" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.trustedProxies) }}{{ fail "ingress.enabled needs trustedProxies: without the addresses or the network of the ingress controller's pods, all clients share its address, and with it one rate limit" }}{{ end }}
{{- if and .Values.backup.schedule (not .Values.backup.passphraseSecret) }}{{ fail "backup.schedule needs backup.passphraseSecret: a backup is sealed" }}{{ end }}
{{- end }}

{{/* Metadata and spec of a pod. Takes root, part, args, ports, resources, data (a volume's source; nothing: claimed),
restartPolicy, affinity. */}}
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
  {{- with .restartPolicy }}
  restartPolicy: {{ . }}
  {{- end }}
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  # More than COUNTERSIGN_GRACE_S and the 10 s that a stop may take beyond it: raise both together.
  terminationGracePeriodSeconds: 20
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    # A volume that fits is left as it is: else each start would open the master key to the group, and be refused for it.
    fsGroupChangePolicy: OnRootMismatch
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
        {{- if eq .part "backup" }}
        - name: COUNTERSIGN_BACKUP_PASSPHRASE
          valueFrom: {secretKeyRef: {name: {{ $values.backup.passphraseSecret }}, key: passphrase}}
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
        timeoutSeconds: 10
      {{- end }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
        {{- if eq .part "backup" }}
        - {name: backups, mountPath: /backups}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- if eq .part "backup" }}
    - name: backups
      persistentVolumeClaim: {claimName: {{ include "countersign.backups" .root }}}
    {{- end }}
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
  {{- with .affinity | default $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
