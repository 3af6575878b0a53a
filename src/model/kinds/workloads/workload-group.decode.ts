import {
  count,
  type Decoder,
  dictionary,
  fieldPath,
  list,
  name,
  nonEmptyList,
  oneOf,
  optional,
  port,
  refine,
  required,
  struct,
  text,
} from '../../fields/decode.ts';
import { exactlyOneOf, withSchemaValidation } from '../../fields/description.ts';
import { withoutEffect, withRejection } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { labels } from '../field-rules.ts';
import { headerNameViolation } from '../virtual-service/virtual-service.rules.ts';
import { workloadFields } from './workload-entry.decode.ts';
import type { ReadinessProbe, WorkloadGroup } from './workload-group.ts';

type Template = WorkloadGroup['template'];
type HttpGet = NonNullable<ReadinessProbe['httpGet']>;

const template: Decoder<Template> = refine(
  struct<Template>({
    address: withRejection(optional(withSchemaValidation(text, { maxLength: 0 })), 'each workload has its own address'),
    ...workloadFields,
  }),
  ({ address }, path) =>
    violation.errorsAt(
      fieldPath(path, 'address'),
      (address ?? '') === ''
        ? undefined
        : violation.disallowedValue('must not be set: each workload has its own address'),
    ),
);

const httpHeader = struct<{ name: string; value: string }>({
  name: required(refine(name, (header, path) => violation.errorsAt(path, headerNameViolation(header)))),
  value: required(text),
});

const methods = ['httpGet', 'tcpSocket', 'exec', 'grpc'] as const;

export const readinessProbe: Decoder<ReadinessProbe> = withSchemaValidation(
  refine(
    struct<ReadinessProbe>({
      initialDelaySeconds: optional(count),
      timeoutSeconds: optional(count),
      periodSeconds: optional(count),
      successThreshold: optional(count),
      failureThreshold: optional(count),
      httpGet: optional(
        struct<HttpGet>({
          path: optional(text),
          port: required(port),
          host: optional(text),
          scheme: optional(oneOf(['HTTP', 'HTTPS'])),
          httpHeaders: optional(list(httpHeader)),
        }),
      ),
      tcpSocket: optional(struct<{ host?: string; port: number }>({ host: optional(text), port: required(port) })),
      exec: optional(struct<{ command: readonly string[] }>({ command: required(nonEmptyList(name)) })),
      grpc: optional(struct<{ service?: string; port: number }>({ service: optional(text), port: required(port) })),
    }),
    (value, path) => {
      const setMethods = methods.filter((method) => value[method] !== undefined);
      if (setMethods.length === 1) return [];
      return [violation.fieldError(path, violation.choiceViolation(methods, setMethods))];
    },
  ),
  exactlyOneOf(methods),
);

export const workloadGroup: Decoder<WorkloadGroup> = struct<WorkloadGroup>({
  metadata: optional(
    struct<NonNullable<WorkloadGroup['metadata']>>({
      labels: optional(labels),
      annotations: optional(dictionary(text)),
    }),
  ),
  template: required(template),
  probe: withoutEffect(optional(readinessProbe), 'the agent uses readinessProbe of its own proxy configuration'),
});
