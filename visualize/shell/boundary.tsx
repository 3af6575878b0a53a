import { Component, type ComponentChildren } from 'preact';

interface BoundaryProps {
  readonly name: string;
  readonly children: ComponentChildren;
}

interface BoundaryState {
  readonly reason: string | undefined;
}

/** Other views continue after one has failed. */
export class ErrorBoundary extends Component<BoundaryProps, BoundaryState> {
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
