"""Bodies that are connected to the world by nothing, one for each group that hangs together."""

from __future__ import annotations

import networkx as nx

from flexure.blocks.multibody.bodies.bodies import Body
from flexure.blocks.multibody.plants.plant_builder import PlantBuilder


def loose_bases(builder: PlantBuilder) -> list[Body]:
    """Return a body of each group that no joint connects to the world, the child of no joint."""
    graph: nx.Graph[Body] = nx.Graph()
    graph.add_nodes_from(builder.bodies)
    graph.add_edges_from((j.parent_body, j.child_body) for j in builder.joints)
    children = {joint.child_body for joint in builder.joints}
    near = nx.node_connected_component(graph, builder.world)
    bases = []
    for body in builder.bodies:
        if body not in near and body not in children:
            bases.append(body)
            near |= nx.node_connected_component(graph, body)
    return bases
