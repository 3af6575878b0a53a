/** Container images from files of this machine, imported into a node without a registry. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { imageTimeS, OciLayout } from '../../deploy/image/oci-layout.ts';
import type { NodeNamespaces } from './node-namespaces.ts';

export interface ImageConfiguration {
  /** Name with tag, such as `localhost/pause:test`. */
  readonly name: string;
  readonly entrypoint: readonly string[];
  /** `uid:gid`. */
  readonly user: string;
}

export interface Image extends ImageConfiguration {
  /** Folder whose content is the only layer. */
  readonly root: string;
  /** Additional images of the same layer. */
  readonly otherImages?: readonly ImageConfiguration[];
}

export interface ContainerRuntime {
  readonly namespaces: NodeNamespaces;
  readonly socket: string;
}

const path = '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Builds an OCI layout and imports it. The layer is not compressed, because that would take longer than copying. */
export async function importImage(image: Image, folder: string, runtime: ContainerRuntime): Promise<void> {
  const { root, otherImages = [] } = image;
  const layout = new OciLayout(join(folder, image.name.replaceAll(/\W/g, '-')), imageTimeS(), 'none');
  try {
    const layers = [await layout.addLayer(root)];
    for (const { name, user: User, entrypoint: Entrypoint } of [image, ...otherImages]) {
      layout.addImage({
        ...{ name, tag: 'test', architecture: process.arch === 'x64' ? 'amd64' : process.arch, labels: {}, layers },
        config: { User, Entrypoint, Env: [`PATH=${path}`], WorkingDir: '/' },
      });
    }
    layout.finish();
    await importLayout(layout.folder, runtime);
  } finally {
    rmSync(layout.folder, { recursive: true, force: true });
  }
}

/** Imports the images of an OCI layout under the names in its index. */
export async function importLayout(layout: string, { namespaces, socket }: ContainerRuntime): Promise<void> {
  const script = 'tar -C "$1" -cf - . | ctr -a "$2" -n k8s.io images import -';
  await namespaces.run(['sh', '-c', script, 'sh', layout, socket]);
}
