/** Reports about a mesh, by `validate` of its files and by a control plane that serves it. */

import { validateFiles } from '../../src/discovery/config/validation/validate-files.ts';
import { diagnosticsOf } from '../../src/discovery/monitor/diagnostics/push-status.ts';
import { reachCodes } from '../../src/model/isolation/cross-namespace-reach.ts';
import { stringify } from '../../src/model/yaml/yaml-writing.ts';
import { givenMeshConfig } from '../fixtures/given-mesh.ts';
import { givenPlane } from '../fixtures/given-plane.ts';
import { type MeshObject, meshSettings } from './consistent-mesh.ts';

const settings = { hasMeshConfig: true, scopesGateways: false, domain: 'cluster.local' };

const texts = new WeakMap<MeshObject, string>();

/** Cached, because a mutation shares all objects except one with its mesh. */
function yamlOf(object: MeshObject): string {
  const yamlText = texts.get(object) ?? stringify(object);
  texts.set(object, yamlText);
  return yamlText;
}

/** `CODE Kind namespace/name field`, sorted; includes notes and unreadable objects. */
export async function validationProblems(
  objects: readonly MeshObject[],
  currentSettings: object = meshSettings,
): Promise<readonly string[]> {
  const text = objects.map(yamlOf).join('---\n');
  const meshFile = { file: 'mesh', text: stringify(currentSettings) };
  const { problems, notes } = await validateFiles([], [{ file: 'mesh.yaml', text }], undefined, {
    ...{ ...settings, meshFile },
    mesh: givenMeshConfig(meshFile.text),
  });
  const [lines, linesOfMesh] = [text.split('\n'), meshFile.text.split('\n')];
  return [
    ...notes.map((note) => `note: ${note}`),
    ...problems.map(({ code = '', object, field = '', file, line, column = 1 }) => {
      const at = (file === meshFile.file ? linesOfMesh : lines)[line - 1]!.slice(column - 1);
      const key = /(?:^|\.)([\w-]+)(?:\[\d+\])*$/.exec(field)?.[1];
      // The position of a list element is that of its value.
      const isThere =
        key === undefined ||
        code === 'FIELD_REQUIRED' ||
        field.endsWith(']') ||
        field.includes('["') ||
        at.startsWith(key) ||
        at.startsWith(`"${key}"`);
      return `${code} ${object} ${field}${isThere ? '' : ` is located at ${JSON.stringify(at)}`}`;
    }),
  ].sort();
}

/** Reports of push_status, without rejected objects. */
export function servedWarnings(objects: readonly MeshObject[]): readonly string[] {
  const text = objects.map(yamlOf).join('---\n');
  const plane = givenPlane(text, { meshConfig: JSON.stringify(meshSettings) });
  const warnings = diagnosticsOf(plane.state, plane.resources.nodes).pilot_config_warnings ?? {};
  return Object.values(warnings)
    .map(({ code = '', objects: keys = [], field = '' }) => {
      const [kind, ...rest] = keys[0]!.split('/');
      return `${code} ${kind!.replace('Kubernetes', '')} ${rest.join('/')} ${field}`;
    })
    .filter((line) => !reachCodes.some((code) => line.startsWith(code)))
    .sort();
}
