import { type LogEventTable, noAction } from './log-event.ts';

const fixConfigMap = 'Correct the field in the ConfigMap. A change needs no restart.';

export const webhookEvents = {
  'injection.settingsLoaded': {
    level: 'info',
    message: 'injection settings loaded',
    meaning: 'Pods are injected with the settings of this ConfigMap from now on.',
    action: noAction,
  },
  'injection.settingsMissing': {
    level: 'info',
    message: 'injection settings missing',
    meaning:
      'The ConfigMap of the injector does not exist. Reviews of pods are rejected until it does; `injection.unavailable` reports them.',
    action: 'Create the ConfigMap if this control plane injects sidecars.',
  },
  'injection.settingsRejected': {
    level: 'warn',
    message: 'injection settings rejected',
    meaning:
      'The ConfigMap of the injector is invalid. Its last valid content applies; before the first valid content, reviews of pods are rejected.',
    action: fixConfigMap,
  },
  'injection.settingsIgnored': {
    level: 'warn',
    message: 'injection setting has no effect',
    meaning: 'A field of the ConfigMap of the injector is not used.',
    action: 'Remove the field.',
  },
  'injection.overlap': {
    level: 'warn',
    message: 'pods selected by two webhook configurations',
    meaning:
      'Two MutatingWebhookConfigurations select pods with these labels in namespaces with these labels. Both are called; only the sidecar of the last name stays.',
    action: 'Delete the configuration that is left from an earlier installation, or correct its selectors.',
  },
  'injection.overlapEnded': {
    level: 'info',
    message: 'webhook configurations select different pods again',
    meaning: 'No pod is selected by both of these MutatingWebhookConfigurations any longer.',
    action: noAction,
  },
  'injection.injected': {
    level: 'debug',
    message: 'pod injected',
    meaning: 'The response to the review of this pod adds the sidecar.',
    action: noAction,
  },
  'injection.skipped': {
    level: 'debug',
    message: 'pod not injected',
    meaning: 'A rule decided that this pod gets no sidecar.',
    action: noAction,
  },
  'injection.rejected': {
    level: 'warn',
    message: 'pod rejected by injection',
    meaning:
      'The sidecar cannot be added to this pod, so that it is not created. Its controller has the same reason in its events.',
    action: 'Correct the annotation or field of the pod that the reason names.',
  },
  'injection.unavailable': {
    level: 'warn',
    message: 'injection unavailable',
    meaning: 'A review of a pod was rejected because the injector has no settings.',
    action: 'Create or correct the ConfigMap that the reason names.',
  },
  'validation.rejected': {
    level: 'warn',
    message: 'object rejected by validation',
    meaning: 'The webhook rejected the creation or change of an object. The client got the same reason.',
    action: 'Correct the fields that the reason names.',
  },
  'webhooks.fault': {
    level: 'error',
    message: 'webhook failed',
    meaning: 'A review ended with an error in the program. The API server applies the failure policy of the webhook.',
    action: 'Report it, with the stack.',
  },
} as const satisfies LogEventTable;
