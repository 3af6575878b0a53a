import { Component, type ComponentChildren } from 'preact';

interface BoundaryProps {
  /** What it is that cannot be shown, for the person. */
  readonly name: string;
  readonly children: ComponentChildren;
}

interface BoundaryState {
  readonly reason: string | undefined;
}

/** A view that breaks says so in its place: the others go on. */
export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { reason: undefined };

  override componentDidCatch(error: unknown): void {
    console.error(error);
    this.setState({ reason: error instanceof Error ? error.message : String(error) });
  }

  override render(): ComponentChildren {
    const { reason } = this.state;
    if (reason === undefined) return this.props.children;
    return (
      <p class="empty broken" role="alert">
        Cannot show the {this.props.name}. This is a bug in chartpilot: {reason}{' '}
        <button type="button" onClick={() => this.setState({ reason: undefined })}>
          Try again
        </button>
      </p>
    );
  }
}
