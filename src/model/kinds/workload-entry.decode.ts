import {
  count,
  type Decoder,
  dictionary,
  type FieldError,
  fieldPath,
  optional,
  port,
  refine,
  struct,
  text,
  withDefault,
} from '../fields/decode.ts';
import { inSchema } from '../fields/description.ts';
import { isHostname, isIpAddress } from '../fields/names.ts';
import { isUnixAddress, labels, mistakeAt, relativeSocketHint } from './field-rules.ts';
import type { WorkloadEntry } from './workload-entry.ts';

/** What a WorkloadEntry says of its workload besides the address; a WorkloadGroup's template says the same. */
export const workloadFields = {
  ports: optional(dictionary(port)),
  labels: optional(labels),
  network: optional(text),
  locality: optional(text),
  weight: optional(count),
  serviceAccount: optional(text),
};

/** A WorkloadEntry's `spec`, or an endpoint of a ServiceEntry. */
export const workloadEntry: Decoder<WorkloadEntry> = inSchema(
  refine(struct<WorkloadEntry>({ address: withDefault(text, ''), ...workloadFields }), workloadEntryErrors),
  {
    anyOf: [
      { required: ['address'], properties: { address: { minLength: 1 } } },
      { required: ['network'], properties: { network: { minLength: 1 } } },
    ],
  },
);

function workloadEntryErrors(entry: WorkloadEntry, path: string): FieldError[] {
  const { address } = entry;
  const at = fieldPath(path, 'address');
  if (address === '') return mistakeAt(at, entry.network ? undefined : 'is required (or network)');
  if (isUnixAddress(address)) {
    const named = Object.keys(entry.ports ?? {}).length > 0;
    return mistakeAt(fieldPath(path, 'ports'), named ? 'must not be given with a unix address' : undefined);
  }
  const known = isIpAddress(address) || isHostname(address);
  return mistakeAt(
    at,
    known
      ? undefined
      : `must be an IP address, a host name or unix:///path, not ${JSON.stringify(address)}${relativeSocketHint(address)}`,
  );
}
