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
    object.finish();
    return network;
}

}  // namespace lockstep::machine
