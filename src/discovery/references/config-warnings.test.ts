import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { givenMeshConfig } from '../../../test/fixtures/given-mesh.ts';
import { givenPlane } from '../../../test/fixtures/given-plane.ts';
import { type FaultyObjects, faultyObjects, meshConfigOfFaults } from '../../../test/fixtures/objects-with-warnings.ts';
import { defaultMeshConfig } from '../../model/mesh/mesh-config.ts';
import { listenerType } from '../../networking/index.ts';
import { warningTable } from '../../runtime/errors.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import { validateFiles } from '../config/validation/validate-files.ts';
import { diagnosticsOf } from '../monitor/diagnostics/push-status.ts';

interface FoundWarning {
  readonly code: string;
  readonly object: string;
  readonly field: string;
  readonly other: string | undefined;
}

const settings = { hasMeshConfig: true, scopesGateways: false, domain: 'cluster.local' };

async function validated(
  yaml: string,
  { hasProvider }: Pick<FaultyObjects, 'hasProvider'>,
): Promise<(FoundWarning & { readonly line: number; readonly otherLine: number | undefined })[]> {
  const mesh = hasProvider ? givenMeshConfig(meshConfigOfFaults) : defaultMeshConfig;
  const meshFile = { file: 'mesh', text: hasProvider ? meshConfigOfFaults : '' };
  const files = [{ file: 'mesh.yaml', text: yaml }];
  const { problems } = await validateFiles([], files, undefined, { ...settings, mesh, meshFile });
  return (
    problems
      // Warnings about the mesh configuration are tested in providers.test.ts.
      .filter(({ code = '', key }) => code in warningTable && key?.kind !== 'MeshConfig')
      .map(({ code = '', key, field = '', line, other }) => ({
        ...{ code, object: `${key!.kind}/${key!.name}`, field, line },
        ...{ other: other && shortOf(other.object), otherLine: other?.line },
      }))
  );
}

function shortOf(object: string): string {
  return object === 'mesh configuration' ? 'MeshConfig/mesh' : object.replace(/ .*\//, '/');
}

/** @param gateway labels of a connected gateway */
function findingsOf(
  yaml: string,
  { gateway, hasProvider }: Pick<FaultyObjects, 'gateway' | 'hasProvider'>,
): FoundWarning[] {
  const plane = givenPlane(yaml, hasProvider ? { meshConfig: meshConfigOfFaults } : {});
  if (gateway !== undefined) {
    const metadata = { NAMESPACE: 'shop', LABELS: gateway };
    const verifiedIdentity = 'spiffe://cluster.local/ns/shop/sa/edge';
    const id = 'router~10.0.0.9~edge.shop~shop.svc.cluster.local';
    plane.connect({ id, cluster: 'edge', metadata, verifiedIdentity }, []);
    for (const node of plane.resources.nodes) node.get(listenerType, '*');
  }
  const warnings = diagnosticsOf(plane.state, plane.resources.nodes).pilot_config_warnings ?? {};
  const shortKey = (key: string): string => key.replace(/\/.*\//, '/');
  const objectWarnings = Object.values(warnings).filter(({ objects }) => !objects![0]?.startsWith('MeshConfig/'));
  return objectWarnings.map(({ code = '', objects = [], field = '', other }) => ({
    ...{ code, object: shortKey(objects[0]!), field },
    other: other && shortKey(other.object),
  }));
}

it.each(faultyObjects)('validate and push_status report $code at both locations: $fault', async (row) => {
  const { code, yaml, object, field, other, gateway, hasProvider } = row;
  const expected = { code, object, field, other };
  const [warning, ...otherWarnings] = await validated(yaml, row);
  expect(otherWarnings).toEqual([]);
  expect(warning).toMatchObject(expected);
  expect(lineOf(yaml, warning!.line)).toBeLessThanOrEqual(warning!.line);
  if (other !== undefined) expect(warning!.otherLine).toBeGreaterThan(0);
  expect(findingsOf(yaml, row)).toEqual([expected]);
  if (gateway !== undefined) expect(findingsOf(yaml, { ...(hasProvider && { hasProvider }) })).toEqual([]);

  /** First line of the document that contains this line. */
  function lineOf(text: string, line: number): number {
    return text.split('\n').slice(0, line).lastIndexOf('---') + 1;
  }
});

it.each(faultyObjects)(
  'validate and push_status do not report $code after the fault is corrected',
  async ({ fix: [wrongText, rightText], yaml, ...row }) => {
    expect(yaml).toContain(wrongText);
    const correctedYaml = yaml.replace(wrongText, rightText);
    expect(await validated(correctedYaml, row)).toEqual([]);
    expect(findingsOf(correctedYaml, row)).toEqual([]);
  },
);

it('validate reports every kind of fault in one directory, and no other problems', async () => {
  const validatedFaults = await validated(faultyObjects.map(({ yaml }) => yaml).join(''), { hasProvider: true });
  const expected = faultyObjects.map(({ code, object, field, other }) => ({ code, object, field, other }));
  const rows = validatedFaults.map(({ code, object, field, other }) => ({ code, object, field, other }));
  const sortedTexts = (all: readonly FoundWarning[]) => all.map((one) => JSON.stringify(one)).sort();
  expect(sortedTexts(rows)).toEqual(sortedTexts(expected as FoundWarning[]));
});

it('warning codes each have a test and a row in docs/config-analysis.md', () => {
  const page = readFileSync(join(packageRoot(), 'docs/config-analysis.md'), 'utf8');
  for (const code of Object.keys(warningTable)) {
    // This warning depends on connected clients, see src/discovery/monitor/diagnostics/proxy-warnings.test.ts.
    if (code !== 'GRPC_NOT_SUPPORTED') expect(faultyObjects.map((one) => one.code)).toContain(code);
    expect(page).toContain(`| \`${code}\` |`);
  }
});
