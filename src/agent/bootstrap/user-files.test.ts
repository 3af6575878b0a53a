import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import type { ErrorFields } from '../../runtime/errors.ts';
import type { ValidationResult } from '../envoy/envoy-validation.ts';
import { requireUserFiles, type UserFiles } from './user-files.ts';

const refusedWith = (reason: string): ValidationResult => ({ is: 'refused', why: reason });
const acceptedResult: ValidationResult = { is: 'taken' };

function fileWith(text: string): string {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, 'file.yaml');
  writeFileSync(path, text);
  return path;
}

const override = (path: string): UserFiles => ({ override: { setting: 'ISTIO_BOOTSTRAP_OVERRIDE', path } });

/** Validates with these results of Envoy, without the override and with it. */
const requiredWith = (files: UserFiles, base: ValidationResult, combined: ValidationResult = base): Promise<void> =>
  requireUserFiles(files, async ({ withOverride }) => (withOverride ? combined : base));

async function fieldsOf(
  attempt: Promise<void>,
): Promise<Omit<ErrorFields, 'code'> & { message: string; code: string | undefined }> {
  const error = (await attempt.then(
    () => new Error('accepted'),
    (rejection: Error) => rejection,
  )) as Error & { code?: string; fields?: ErrorFields };
  return { message: error.message, code: error.code, ...error.fields };
}

const nothingWrong = { message: 'accepted' };

test('reports an unknown field of the override with field and line', async () => {
  const path = fileWith('admin:\n  profile_pathh: /tmp/x\n');
  const envoyReason =
    'Protobuf message (type envoy.config.bootstrap.v3.Bootstrap reason INVALID_ARGUMENT: invalid JSON in ' +
    'envoy.config.bootstrap.v3.Bootstrap @ admin: message envoy.config.bootstrap.v3.Admin, near 1:27 (offset 26): ' +
    "no such field: 'profile_pathh') has unknown fields";
  expect(await fieldsOf(requiredWith(override(path), acceptedResult, refusedWith(envoyReason)))).toEqual({
    message: `invalid Envoy bootstrap: ISTIO_BOOTSTRAP_OVERRIDE ${path}:2:3: admin.profile_pathh: rejected by Envoy: no such field`,
    code: 'BOOTSTRAP_INVALID',
    path: `ISTIO_BOOTSTRAP_OVERRIDE: ${path}: admin.profile_pathh`,
    line: 2,
    column: 3,
  });
});

test('reports an unknown top-level field or an invalid value with the field', async () => {
  const path = fileWith('foo: 1\ndynamic_resources: {lds_config: {ads: "yes"}}\n');
  const unknownField =
    "Protobuf message (type B reason INVALID_ARGUMENT: invalid JSON in B, near 1:8 (offset 7): no such field: 'foo') has unknown fields";
  expect(await fieldsOf(requiredWith(override(path), acceptedResult, refusedWith(unknownField)))).toMatchObject({
    path: `ISTIO_BOOTSTRAP_OVERRIDE: ${path}: foo`,
    line: 1,
  });
  const value =
    'Unable to parse JSON as proto (INVALID_ARGUMENT: invalid JSON in B @ dynamic_resources.lds_config.ads: message A, ' +
    `near 1:43 (offset 42): unexpected character: '"'; expected '{'): {"dynamic_resources":1}`;
  const foundFields = await fieldsOf(requiredWith(override(path), acceptedResult, refusedWith(value)));
  expect(foundFields).toMatchObject({
    path: `ISTIO_BOOTSTRAP_OVERRIDE: ${path}: dynamic_resources.lds_config.ads`,
    line: 2,
  });
  expect(foundFields.message).toMatch(/rejected by Envoy: unexpected character: '"'; expected '\{'$/);
});

test("reports a violated constraint with the field, or with only Envoy's message if the field is in a list", async () => {
  const path = fileWith('stats_flush_interval: 0s\n');
  const chain = (...messages: string[]): ValidationResult =>
    refusedWith(
      `Proto constraint validation failed (${messages.join(': embedded message failed validation | caused by ')})`,
    );
  expect(
    await fieldsOf(
      requiredWith(
        override(path),
        acceptedResult,
        chain('BootstrapValidationError.StatsFlushInterval: value must be >= 1ms'),
      ),
    ),
  ).toMatchObject({ path: `ISTIO_BOOTSTRAP_OVERRIDE: ${path}: stats_flush_interval`, line: 1 });
  const inList = await fieldsOf(
    requiredWith(
      override(path),
      acceptedResult,
      chain(
        'BootstrapValidationError.StaticResources',
        'StaticResourcesValidationError.Clusters[3]',
        'ClusterValidationError.Name: value length must be at least 1 characters',
      ),
    ),
  );
  expect(inList).toMatchObject({ path: `ISTIO_BOOTSTRAP_OVERRIDE: ${path}` });
  expect(inList.message).toMatch(/ClusterValidationError\.Name: value length/);
});

test('attributes a rejection to the custom bootstrap file or to no file if Envoy accepts the bootstrap without the override', async () => {
  const path = fileWith('{}');
  const badDuration = refusedWith('Invalid duration: Expected positive duration');
  expect(await fieldsOf(requiredWith(override(path), badDuration))).toEqual({ ...nothingWrong, code: undefined });
  const bootstrap = { setting: 'customConfigFile', path };
  expect(await fieldsOf(requiredWith({ ...override('/other'), bootstrap }, badDuration))).toMatchObject({
    code: 'BOOTSTRAP_INVALID',
    path: `customConfigFile: ${path}`,
  });
});

test('accepts files if Envoy reports a missing file or gives no result', async () => {
  const path = fileWith('{}');
  for (const combined of [
    refusedWith('Invalid path: /no/such.pem'),
    { is: 'not known', why: 'killed' } as const,
    acceptedResult,
  ]) {
    expect(await fieldsOf(requiredWith(override(path), acceptedResult, combined)), combined.is).toMatchObject(
      nothingWrong,
    );
  }
  expect(
    await fieldsOf(requiredWith(override(path), acceptedResult, refusedWith(`Invalid path: ${path}`))),
  ).toMatchObject({
    code: 'BOOTSTRAP_INVALID',
  });
});
