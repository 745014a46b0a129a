{{- define "tradewind.sqlList" -}}
{{- range $at, $each := . }}{{ if $at }}, {{ end }}'{{ $each | replace "'" "''" }}'{{ end }}
{{- end }}

{{/* Tasks that wait for a worker of these queues or run on one: with `concurrency` as target, the workers that are needed. */}}
{{- define "tradewind.queueQuery" -}}
SELECT coalesce(sum(waiting + running), 0) FROM queue_depth WHERE executor = 'queue' AND queue IN ({{ include "tradewind.sqlList" . }})
{{- end }}

{{/* Triggers that have to run now. Timers need no triggerer; a trigger with two replicas counts twice. */}}
{{- define "tradewind.triggerQuery" -}}
SELECT coalesce(sum(triggers), 0) FROM trigger_depth WHERE queue IN ({{ include "tradewind.sqlList" . }})
{{- end }}

{{- define "tradewind.scaledObject" }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ include "tradewind.fullname" .root }}-{{ .component }}
  labels: {{- include "tradewind.labels" . | nindent 4 }}
spec:
  scaleTargetRef: { name: {{ include "tradewind.fullname" .root }}-{{ .component }} }
  pollingInterval: 5
  minReplicaCount: {{ .autoscaling.minReplicas }}
  maxReplicaCount: {{ .autoscaling.maxReplicas }}
  triggers:
    - type: postgresql
      metadata:
        query: {{ .query | quote }}
        targetQueryValue: {{ .target | toString | quote }}
      authenticationRef: { name: {{ include "tradewind.fullname" .root }}-database }
{{- end }}
