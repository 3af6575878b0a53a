/**
 * Rejects values that crash Envoy 1.40, either when it loads them or on the first request. `test/e2e/envoy-crashing-values.test.ts` reproduces each.
 */

import { zstdCompressSync } from 'node:zlib';
import type { LenientMessage } from '../../envoy-api/envoy-api.ts';
import { messagesWithin } from '../../envoy-api/messages-within.ts';
import { uriRewriteViolation, uriTemplateViolation } from '../../fields/uri-template.ts';
import * as violation from '../../fields/violation.ts';

/** A decoded message with the field names of protobuf-es. */
// biome-ignore lint/suspicious/noExplicitAny: each rule knows the type of its message
type Fields = any;

interface Rule {
  readonly type: string;
  /** Field name as in the .proto file. */
  readonly field: string;
  readonly violationOf: (message: Fields) => violation.FieldViolation | undefined;
  /** The rule does not apply to merged patches, because the target may contain the field that the patch lacks. */
  readonly isWhole?: true;
}

const needsService = violation.unsafeValue('is required: without it Envoy crashes on the first request');
const zstd = 'envoy.extensions.compression.zstd';

const rules: readonly Rule[] = [
  {
    type: 'envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig',
    field: 'path_template',
    violationOf: ({ pathTemplate }) => uriTemplateViolation(pathTemplate),
  },
  {
    type: 'envoy.extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig',
    field: 'path_template_rewrite',
    violationOf: ({ pathTemplateRewrite }) => uriRewriteViolation(pathTemplateRewrite),
  },
  {
    type: 'envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
    field: 'services',
    violationOf: ({ services }) => (services.case === undefined ? needsService : undefined),
    isWhole: true,
  },
  {
    type: 'envoy.extensions.filters.http.admission_control.v3.AdmissionControl',
    field: 'sampling_window',
    violationOf: ({ samplingWindow }) =>
      samplingWindow !== undefined && samplingWindow.seconds < 1n
        ? violation.unsafeValue('must be at least 1s: Envoy crashes with a shorter one')
        : undefined,
  },
  {
    type: 'envoy.config.core.v3.GrpcService.GoogleGrpc',
    field: 'credentials_factory_name',
    violationOf: ({ credentialsFactoryName: name }) =>
      credentialsFactories.has(name)
        ? undefined
        : violation.unsafeValue(
            `must be a credentials factory of Envoy, got ${JSON.stringify(name)}: Envoy crashes with others`,
          ),
  },
  {
    type: `${zstd}.compressor.v3.Zstd`,
    field: 'dictionary',
    violationOf: ({ dictionary }) => dictionaryViolation(dictionary),
  },
  {
    type: `${zstd}.decompressor.v3.Zstd`,
    field: 'dictionaries',
    violationOf: ({ dictionaries }) =>
      (dictionaries as unknown[]).map(dictionaryViolation).find((reason) => reason !== undefined),
  },
];

const credentialsFactories: ReadonlySet<string> = new Set([
  ...['', 'envoy.grpc_credentials.default', 'envoy.grpc_credentials.file_based_metadata'],
]);

const rulesByType = Map.groupBy(rules, ({ type }) => type);

export function crashingValues(
  { schema, message }: Pick<LenientMessage, 'schema' | 'message'>,
  { isMerged: isMergePatch }: { readonly isMerged: boolean },
): readonly violation.FieldViolation[] {
  return [...messagesWithin(schema, message)].flatMap((nestedMessage) =>
    (rulesByType.get(nestedMessage.schema.typeName) ?? []).flatMap(({ field, violationOf, isWhole }) => {
      const crashViolation = isWhole && isMergePatch ? undefined : violationOf(nestedMessage.message);
      if (crashViolation === undefined) return [];
      return [{ ...crashViolation, message: `${nestedMessage.schema.typeName}.${field} ${crashViolation.message}` }];
    }),
  );
}

function dictionaryViolation(source: Fields): violation.FieldViolation | undefined {
  const { case: kind, value } = source?.specifier ?? {};
  if (kind !== 'inlineBytes' && kind !== 'inlineString') return undefined;
  const dictionary = Buffer.from(value);
  // A zstd dictionary starts with a magic number and its ID.
  const hasDictionaryId =
    dictionary.length > 8 && dictionary.readUInt32LE(0) === 0xec30a437 && dictionary.readUInt32LE(4) > 0;
  return hasDictionaryId && canLoadDictionary(dictionary)
    ? undefined
    : violation.unsafeValue('must be a zstd dictionary with an ID: Envoy crashes with others');
}

function canLoadDictionary(dictionary: Buffer): boolean {
  try {
    zstdCompressSync('', { dictionary } as object);
    return true;
  } catch {
    return false;
  }
}
