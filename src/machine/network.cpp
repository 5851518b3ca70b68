#include "machine/field.hpp"
#include "machine/machine.hpp"

namespace lockstep::machine {

Network read_network(const config::Node& node, config::Diagnostics& diagnostics) {
    config::Object object(node, "network", diagnostics);
    Network network;
    network.name = object.text_or("title", "");
    network.per_nic = positive(object, "per_nic", &config::Object::bandwidth);
    network.nics_per_node = static_cast<int>(object.integer_or("nics_per_node", 0, 0, 64));
    network.latency = object.seconds("latency");
    network.oversubscription = object.number_or("oversubscription", 1, 1, 1000);
    network.sources = texts_if_any(object, "sources");
    network.nodes_per_leaf = static_cast<int>(object.integer_or("nodes_per_leaf", 1, 1, 100'000));
    network.has_rails = object.flag_or("rails", false);
    if (network.has_rails && network.nodes_per_leaf == 1)
        object.error("rails", "join nodes, and a leaf has one; give nodes_per_leaf, how many nodes a rail joins");
    object.finish();
    return network;
}

}  // namespace lockstep::machine
