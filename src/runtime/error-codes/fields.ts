import type { ErrorTable } from './error-table.ts';

/** Errors and warnings about one field of an object, of the mesh configuration or of a ProxyConfig. */
export const fieldTable = {
  FIELD_TYPE_INVALID: {
    meaning: 'the value has another type than the field',
    action: 'write a value of the expected type; put strings in quotes',
  },
  FIELD_REQUIRED: {
    meaning: 'a field that is needed is not set',
    action: 'set the field, or one of the fields that the message lists',
  },
  FIELD_EMPTY: {
    meaning: 'a string, list or map is empty, or `null` where that would remove a restriction',
    action: 'set a value, or remove the field',
  },
  FIELD_UNKNOWN: {
    meaning: 'there is no such field',
    action: 'correct the name; the message proposes the nearest one',
  },
  FIELD_VALUE_UNKNOWN: {
    meaning: 'the field does not accept the value',
    action: 'use one of the listed values',
  },
  FIELD_OUT_OF_RANGE: {
    meaning: 'a number, duration or sum is outside its range',
    action: 'use a value within the range',
  },
  FIELD_TOO_LARGE: {
    meaning: 'a string, list or expression is longer than the field accepts',
    action: 'shorten it',
  },
  FIELD_FORMAT_INVALID: {
    meaning: 'a string does not have the form of the field (host name, CIDR, duration, expression, ...)',
    action: 'write it in the expected form',
  },
  FIELD_NOT_ALLOWED: {
    meaning: 'the value is valid elsewhere and not in this place',
    action: 'remove it, or use the field that the message names',
  },
  FIELD_UNSUPPORTED: {
    meaning: 'the field or value belongs to the API and is not supported by this control plane',
    action: 'remove it; docs/compatibility.md lists what is supported',
  },
  FIELD_DUPLICATE: {
    meaning: 'the value repeats another one of the same list',
    action: 'remove or rename one of them',
  },
  FIELD_CONFLICT: {
    meaning: 'values of several fields contradict each other',
    action: 'change one of the fields that the message names',
  },
  FIELD_REFERENCE_UNKNOWN: {
    meaning: 'the value refers to something that the object does not have',
    action: 'correct the reference',
  },
  FIELDS_EXCLUSIVE: {
    meaning: 'fields that exclude each other are set',
    action: 'remove all but one of them',
  },
  FIELD_UNSAFE: {
    meaning: 'Envoy crashes with the value',
    action: 'use a value that Envoy accepts',
  },
  LIMIT_EXCEEDED: {
    meaning: 'the value is valid and too large',
    action: 'divide the object into several smaller ones; docs/compatibility.md lists the limits',
  },
  KIND_UNKNOWN: {
    meaning: 'the kind, its group or its version is not known',
    action: 'correct `apiVersion` and `kind`',
  },
  KIND_UNSUPPORTED: {
    meaning: 'warning: the kind belongs to Istio or the Gateway API and is not supported: the object is skipped',
    action: 'remove the object, or use a supported kind (docs/compatibility.md)',
  },
  OBJECT_DUPLICATE: {
    meaning:
      'warning: another object with this kind, namespace and name differs, and the first one applies; an error if that one is invalid',
    action: 'remove or rename one of them',
  },
  YAML_INVALID: {
    meaning: 'the text is not YAML, or is nested too deeply',
    action: 'correct the text at the reported line and column',
  },
  FIELD_WITHOUT_EFFECT: {
    meaning: 'warning: the field is accepted and has no effect',
    action: 'remove it, or use what the message names',
  },
  FIELD_DOUBTFUL: {
    meaning: 'warning: the value is valid and probably not what was meant',
    action: 'check the value',
  },
  FIELD_DEPRECATED: {
    meaning: 'warning: the name or field is supported and deprecated',
    action: 'use its successor',
  },
  CREDENTIAL_INVALID: {
    meaning: 'warning: a Secret or ConfigMap that the object uses has no valid certificate or key, so connections fail',
    action: 'correct the Secret or ConfigMap that the message names',
  },
  SERVER_NOT_SERVED: {
    meaning:
      'warning: servers of Gateways conflict, so that one of them or some of its hosts are not served as written',
    action: 'change the port, hosts or TLS settings of one of the servers that the message names',
  },
  BACKEND_TLS_NOT_APPLIED: {
    meaning: 'warning: a BackendTLSPolicy does not apply as written, so requests fail or are sent without its settings',
    action: 'correct the reference, the port name or the conflicting policy that the message names',
  },
  OBJECT_REJECTED: {
    meaning:
      'warning: a rejected restriction has no valid earlier version, so the traffic that it may concern is denied',
    action: 'correct the rejected object',
  },
} as const satisfies ErrorTable;

/** `MATCH_SHADOWED` is also a warning of the configuration analysis (`warningTable`). */
export type FieldCode = keyof typeof fieldTable | 'MATCH_SHADOWED';
