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
} from '../../fields/decode.ts';
import { withSchemaValidation } from '../../fields/description.ts';
import { isHostname, isIpAddress } from '../../fields/names.ts';
import * as violation from '../../fields/violation.ts';
import { isUnixAddress, labels, relativeSocketHint } from '../field-rules.ts';
import type { WorkloadEntry } from './workload-entry.ts';

export const workloadFields = {
  ports: optional(dictionary(port)),
  labels: optional(labels),
  network: optional(text),
  locality: optional(text),
  weight: optional(count),
  serviceAccount: optional(text),
};

export const workloadEntry: Decoder<WorkloadEntry> = withSchemaValidation(
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
  const addressPath = fieldPath(path, 'address');
  if (address === '')
    return violation.errorsAt(addressPath, entry.network ? undefined : violation.missingValue('unless network is set'));
  if (isUnixAddress(address)) {
    const hasPorts = Object.keys(entry.ports ?? {}).length > 0;
    return violation.errorsAt(
      fieldPath(path, 'ports'),
      hasPorts ? violation.excludedField('with a unix address') : undefined,
    );
  }
  const isValidAddress = isIpAddress(address) || isHostname(address);
  return violation.errorsAt(
    addressPath,
    isValidAddress
      ? undefined
      : violation.mustBe('an IP address, a host name or unix:///PATH', address, { hint: relativeSocketHint(address) }),
  );
}
